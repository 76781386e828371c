import io.lettuce.core.RedisClient;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;

// java Lettuce.java URL ID: a draw, with the client's own settings.
class Lettuce {
    record Command(String name) implements ProtocolKeyword {
        public byte[] getBytes() {
            return name.getBytes(StandardCharsets.UTF_8);
        }

        public String toString() {
            return name;
        }
    }

    public static void main(String[] args) {
        var client = RedisClient.create(args[0]);
        var c = client.connect();
        var draw = new CommandArgs<>(StringCodec.UTF8).add("ann").add("free").add("ID").add(args[1]);
        System.out.println("draw " + c.sync().dispatch(new Command("DRAW"), new NestedMultiOutput<>(StringCodec.UTF8), draw));
        c.close();
        client.shutdown();
    }
}

import java.nio.charset.StandardCharsets;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.commands.ProtocolCommand;

// java Jedis.java URL ID: a draw and a group, with the client's own settings.
class Jedis {
    record Command(String name) implements ProtocolCommand {
        public byte[] getRaw() {
            return name.getBytes(StandardCharsets.UTF_8);
        }
    }

    public static void main(String[] args) {
        try (var c = RedisClient.create(args[0])) {
            System.out.println("draw " + c.sendCommand(new Command("DRAW"), "ann", "free", "ID", args[1]));
            var group = c.multi();
            group.sendCommand(new Command("GRANT"), "ann", "gem", "1", "ID", args[1] + "-group");
            group.sendCommand(new Command("DRAW"), "ann", "free");
            System.out.println("group " + group.exec().size());
        }
    }
}

package dev.kuji;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import dev.kuji.v1.BatchRequest;
import dev.kuji.v1.Command;
import dev.kuji.v1.StreamDrawsRequest;
import java.math.BigInteger;
import java.security.SecureRandom;
import java.util.List;

/** Request ids. */
public final class Ids {
  private static final String DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  private static final SecureRandom RANDOM = new SecureRandom();

  private Ids() {}

  /**
   * Returns a new request id, a ULID: its time and 80 random bits. Keep it to be able to ask later what came of the
   * command.
   */
  public static String newId() {
    BigInteger number = BigInteger.valueOf(System.currentTimeMillis()).shiftLeft(80).or(new BigInteger(80, RANDOM));
    StringBuilder id = new StringBuilder(26);
    for (int shift = 125; shift >= 0; shift -= 5) {
      id.append(DIGITS.charAt(number.shiftRight(shift).intValue() & 31));
    }
    return id.toString();
  }

  /** Returns a request with the ids that were missing, in a batch too. */
  static Message identify(Message request) {
    if (request instanceof BatchRequest batch) {
      BatchRequest.Builder b = batch.toBuilder();
      for (Command.Builder command : b.getCommandsBuilderList()) {
        if (command.getRequestId().isEmpty()) {
          command.setRequestId(newId());
        }
      }
      return b.build();
    }
    FieldDescriptor field = request.getDescriptorForType().findFieldByName("request_id");
    if (field == null || !request.getField(field).equals("")) {
      return request;
    }
    return request.toBuilder().setField(field, newId()).build();
  }

  /** Returns the request ids of a command or of a batch. */
  static List<String> of(Message request) {
    if (request instanceof BatchRequest batch) {
      return batch.getCommandsList().stream().map(Command::getRequestId).toList();
    }
    FieldDescriptor field = request.getDescriptorForType().findFieldByName("request_id");
    return field == null ? List.of() : List.of((String) request.getField(field));
  }

  /** Returns a batch of a stream with the ids that were missing. */
  static StreamDrawsRequest identify(StreamDrawsRequest batch) {
    StreamDrawsRequest.Builder b = batch.toBuilder();
    int draws = b.getPlayerIndexesCount() > 0 ? b.getPlayerIndexesCount() : b.getPlayersCount();
    while (batch.getRequestIdsCount() == 0 && b.getRequestIdsCount() < draws) {
      b.addRequestIds("");
    }
    for (int i = 0; i < b.getRequestIdsCount(); i++) {
      if (b.getRequestIds(i).isEmpty()) {
        b.setRequestIds(i, newId());
      }
    }
    return b.build();
  }
}

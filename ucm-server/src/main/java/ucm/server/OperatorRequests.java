package ucm.server;

import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.ProtocolException;

/** Messages of operators on one connection: what takes long tells how far it is, and ends with the connection. */
final class OperatorRequests {

  /** Sends a frame. */
  interface Sender {
    void send(FrameWriter frame) throws IOException;
  }

  private final Administration administration;
  private final Sender sender;

  OperatorRequests(Administration administration, Sender sender) {
    this.administration = administration;
    this.sender = sender;
  }

  /** Does what a message asks for; false when it is none of an operator's. */
  boolean handle(int type, int sequence, FrameReader body) throws IOException, ProtocolException {
    switch (type) {
      case MessageType.RELOAD ->
          report(sequence, administration.reload(body.string(), body.string()));
      case MessageType.DRAIN -> {
        boolean drains = body.u8() != 0;
        Duration most = Duration.ofSeconds(body.u32());
        report(
            sequence,
            drains
                ? administration.drain(most, new Progress("drain", sequence))
                : administration.undrain());
      }
      case MessageType.CLEAR ->
          report(sequence, administration.clear(new Progress("clear", sequence)));
      case MessageType.LOG_LEVEL -> report(sequence, administration.logLevel(body.string()));
      default -> {
        return false;
      }
    }
    return true;
  }

  private void report(int sequence, Map<String, Object> answer) throws IOException {
    sender.send(
        new FrameWriter(MessageType.REPORT, sequence)
            .string(JsonMapper.shared().writeValueAsString(answer)));
  }

  /** Sends how far work is, some times a second; the work is stopped when the client has gone. */
  private final class Progress implements Observer {

    private static final long INTERVAL_NANOS = 200_000_000;

    private final String what;
    private final int sequence;
    private long lastNanos = System.nanoTime() - TimeUnit.SECONDS.toNanos(1);
    private volatile boolean stopped;

    Progress(String what, int sequence) {
      this.what = what;
      this.sequence = sequence;
    }

    @Override
    public synchronized void at(long done, long total) {
      long now = System.nanoTime();
      if (stopped || now - lastNanos < INTERVAL_NANOS) {
        return;
      }
      lastNanos = now;
      try {
        sender.send(
            new FrameWriter(MessageType.PROGRESS, sequence).string(what).u64(done).u64(total));
      } catch (IOException e) {
        stopped = true;
      }
    }

    @Override
    public boolean isStopped() {
      return stopped;
    }
  }
}

package ucm.example.valkey;

import io.lettuce.core.output.CommandOutput;
import java.nio.ByteBuffer;

/** Takes the server's answer for one shard: its bytes, or the number that says it was stored. */
final class MoveReply extends CommandOutput<String, ShardMove, ShardMove> {

  private final ShardMove move;

  MoveReply(ShardCodec codec, ShardMove move) {
    super(codec, move);
    this.move = move;
  }

  @Override
  public void set(ByteBuffer bytes) {
    // Null: there is no such shard.
    if (bytes != null) {
      move.readFrom(bytes);
    }
  }

  @Override
  public void set(long stored) {
    // 0 when it was there already, which is as good.
  }

  /** What is left of the shard's time, which the client gives the command. */
  long millisLeft() {
    return Math.max(1, move.nanosLeft() / 1_000_000);
  }
}

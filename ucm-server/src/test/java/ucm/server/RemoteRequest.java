package ucm.server;

import com.carrotsearch.hppc.IntArrayList;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.LookupMessage.FoundMessage;

/** What the scheduler side remembers of a request until it is finished. */
final class RemoteRequest {

  static final int[] NO_BLOCKS = {};

  final String id;
  final int handle;
  IntArrayList tokens = new IntArrayList();
  IntArrayList table = new IntArrayList();

  /** The connection that knows the first tokens. */
  @Nullable DaemonConnection toldTo;

  /** How many tokens it knows. */
  int told;

  /** Tokens on the device at the last look-up. */
  int computed;

  long askedNanos;

  /** Of the last look-up, as long as it is not used. */
  @Nullable CompletableFuture<FrameReader> answer;

  /** The same, once it was waited for. */
  @Nullable FoundMessage found;

  /** Tokens that the engine was offered and has not answered yet. */
  int offered;

  /** What its next step loads, if anything. */
  @Nullable FoundMessage load;

  /** How many blocks of it, from the computed ones on. */
  int loadBlocks;

  RemoteRequest(String id, int handle) {
    this.id = id;
    this.handle = handle;
  }

  /** A new look-up begins, so nothing of the one before it counts. */
  void asks(int[] of, int computedTokens) {
    tokens = IntArrayList.from(of);
    computed = computedTokens;
    askedNanos = System.nanoTime();
    answer = null;
    found = null;
    load = null;
  }

  /** How many of the first tokens are these. */
  int samePrefix(int[] others) {
    int most = Math.min(tokens.size(), others.length);
    int differs = Arrays.mismatch(tokens.buffer, 0, most, others, 0, most);
    return differs < 0 ? most : differs;
  }

  /** Adds a step's blocks to the table. */
  void addBlocks(ScheduledRequest scheduled) {
    if (offered > 0 && scheduled.computedTokens() > computed) {
      throw new IllegalStateException(
          "request %s is scheduled as if %s tokens had been loaded: tell allocated() first"
              .formatted(id, offered));
    }
    if (scheduled.resumed()) {
      table.clear();
    }
    table.add(scheduled.newBlocks());
  }

  /** How many known tokens are in full blocks after a step that completes some; else 0. */
  int completedTokens(ScheduledRequest scheduled, int blockTokens) {
    int known =
        Math.min(scheduled.computedTokens() + scheduled.newTokens(), tokens.size()) / blockTokens;
    return known > scheduled.computedTokens() / blockTokens ? known * blockTokens : 0;
  }

  /** The engine's blocks of a part of the table. */
  int[] blocks(int from, int to) {
    if (to > table.size()) {
      throw new IllegalStateException(
          ("request %s: a step needs %s blocks and the request's table has %s: hand in all of its"
                  + " blocks with allocated() or plan()")
              .formatted(id, to, table.size()));
    }
    return Arrays.copyOfRange(table.buffer, from, to);
  }
}

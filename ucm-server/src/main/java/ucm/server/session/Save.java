package ucm.server.session;

import java.util.BitSet;
import java.util.concurrent.CompletableFuture;
import ucm.api.BlockIds;

/** Blocks of a request that a step completes, and their slots. Its state is guarded by {@link Saves}. */
final class Save {

  final long id;
  final String requestId;
  final BlockIds ids;
  final int[] slots;
  final long sinceNanos;

  /** Ends with whether the bytes that the step computed from are right. */
  final CompletableFuture<Boolean> basis;

  /** Ranks that have not said yet that their slots are filled. */
  final BitSet awaited = new BitSet();

  /** Ranks whose part is being stored, or waits for that. */
  final BitSet storing = new BitSet();

  /** Whether nothing more of it is to be stored. */
  boolean dropped;

  /** Whether a client that is gone may still be writing to its slots. */
  boolean abandoned;

  Save(
      long id,
      String requestId,
      BlockIds ids,
      int[] slots,
      int ranks,
      CompletableFuture<Boolean> basis,
      long sinceNanos) {
    this.id = id;
    this.requestId = requestId;
    this.ids = ids;
    this.slots = slots;
    this.basis = basis;
    this.sinceNanos = sinceNanos;
    awaited.set(0, ranks);
  }
}

package ucm.server.session;

import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.CompletableFuture;

/** Slots with blocks that a request may load. Its state is guarded by {@link Holds}. */
final class Hold {

  /** What becomes of it, in this order. */
  enum State {
    /** Its blocks are on their way from the store. */
    FILLING,
    /** It was promised. */
    HELD,
    /** The engine loads it. */
    TAKEN,
    /** Its slots are no longer its own. */
    ENDED
  }

  final long id;
  final int handle;

  /** Which block of the request is in the first slot. */
  final int firstBlock;

  final long sinceNanos;

  /** Ends with whether all ranks have copied what was taken. */
  final CompletableFuture<Boolean> copied = new CompletableFuture<>();

  final BitSet ranks = new BitSet();
  int[] slots;
  State state = State.FILLING;
  boolean cancelled;

  Hold(long id, int handle, int firstBlock, int[] slots, long sinceNanos) {
    this.id = id;
    this.handle = handle;
    this.firstBlock = firstBlock;
    this.slots = slots;
    this.sinceNanos = sinceNanos;
  }

  /** Keeps the first slots; returns the others. */
  int[] keep(int count) {
    int[] rest = Arrays.copyOfRange(slots, count, slots.length);
    slots = Arrays.copyOf(slots, count);
    return rest;
  }
}

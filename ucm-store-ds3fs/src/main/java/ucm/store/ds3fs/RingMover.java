package ucm.store.ds3fs;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;

/**
 * Moves vectors of memory on one ring, several at once, one way. For one thread, except {@link #close}.
 * Hot path: allocates nothing.
 *
 * <p>Memory that 3FS maps is named in the requests themselves; all other goes through a slot of the
 * staging memory, copied before its requests are prepared, or when the last of them has ended. Where 3FS
 * did less than it was asked to, another round asks for the rest.
 *
 * <p>A request that 3FS does not answer in time is given up: its memory was never named, so the caller may
 * do what it likes with it, and its slot comes back with the answer. That cannot be done when the
 * memory was named; then the only way is to wait.
 */
final class RingMover {

  private static final Logger LOG = LoggerFactory.getLogger(Ds3fsStore.class);

  // Shorter stretches are copied together with their neighbours, which is one request then.
  private static final long MIN_DIRECT_BYTES = 16 << 10;

  private static final long RETRY_NANOS = 10_000_000;

  // Most parts of a round.
  private static final int MAX_PARTS = 64;

  // In place of an offset in the staging memory: the part is not copied.
  private static final long NOT_STAGED = -1;

  /**
   * A vector of memory to be read or written, in rounds of several parts, each of which is one request to
   * 3FS. A part is either a stretch of memory that 3FS maps anyway, or several neighbours that are copied
   * through staging memory. Made once and used over and over by its {@link RingMover}.
   */
  static final class Request {

    final int number;
    final RingMover mover;

    // The parts of the round.
    final long[] lengths = new long[MAX_PARTS];
    final long[] addresses = new long[MAX_PARTS];
    final long[] staged = new long[MAX_PARTS];
    final long[] results = new long[MAX_PARTS];
    int parts;

    // What is left to be moved; null when it is no longer waited for.
    @Nullable IoVector memory;
    @Nullable NativePath path;
    int fd;
    // Where in the file the round starts, in bytes.
    long offset;
    // Bytes moved by earlier rounds.
    long moved;
    // Requests to 3FS that have not ended, and one while more of them are being made.
    int underWay;
    // Its offset in the staging memory, or -1.
    int slot = -1;
    // Some part names memory of the caller.
    boolean isDirect;
    boolean isDone;
    // When to give up, by System.nanoTime.
    long deadlineNanos;
    // What failed first, or null.
    @Nullable String failedCall;
    int errno;

    Request(RingMover mover, int number) {
      this.mover = mover;
      this.number = number;
    }

    void begin(int file, NativePath name, IoVector vector, long at, long deadline) {
      fd = file;
      path = name;
      memory = vector;
      offset = at;
      deadlineNanos = deadline;
      parts = 0;
      moved = 0;
      underWay = 0;
      isDirect = false;
      isDone = vector.byteSize() == 0;
      failedCall = null;
      errno = 0;
    }

    void addPart(long address, long length, long stagedAt) {
      addresses[parts] = address;
      lengths[parts] = length;
      staged[parts] = stagedAt;
      results[parts] = 0;
      parts++;
    }

    /** Records a failure; the first one counts. */
    void fail(String call, int error) {
      if (failedCall == null) {
        failedCall = call;
        errno = error;
      }
    }

    /** Drops what the caller handed in. */
    void clear() {
      memory = null;
      path = null;
    }
  }

  private final Mount mount;
  private final boolean isRead;
  private final Ring ring;
  private final StagingMemory.Part slots;

  private final Request[] requests;
  private final ArrayDeque<Request> free;
  // Those that have to ask for the rest.
  private final ArrayDeque<Request> unfinished = new ArrayDeque<>();

  /** Makes its ring; the part of the staging memory is its own from then on. */
  RingMover(Mount mount, boolean isRead, RingSettings settings, StagingMemory.Part part) {
    this.mount = mount;
    this.isRead = isRead;
    this.slots = part;
    this.ring = new Ring(this, mount.point(), isRead, settings);
    requests = new Request[settings.vectors()];
    Arrays.setAll(requests, i -> new Request(this, i));
    free = new ArrayDeque<>(List.of(requests));
  }

  /**
   * Begins to move a vector.
   *
   * @throws FileException when earlier ones hold all slots until the deadline
   */
  Request begin(int fd, NativePath path, IoVector memory, long offset, long deadline) {
    while (free.isEmpty()) {
      awaitSome(path, deadline);
    }
    Request request = free.pop();
    request.begin(fd, path, memory, offset, deadline);
    if (!request.isDone) {
      nextRound(request);
    }
    return request;
  }

  /**
   * Waits until a request is done.
   *
   * @return bytes moved
   * @throws FileException when it failed, or 3FS has not answered in time
   */
  long await(Request request) {
    NativePath path = Objects.requireNonNull(request.path);
    while (!request.isDone) {
      if (!unfinished.isEmpty()) {
        nextRound(unfinished.pop());
      } else {
        awaitSome(path, request.deadlineNanos);
      }
    }
    if (request.failedCall != null) {
      throw new FileException(request.failedCall, path, request.errno);
    }
    return request.moved;
  }

  /** Takes back the slot of a request that is done. */
  void release(Request request) {
    request.clear();
    free.push(request);
  }

  /** Waits until nothing of a request is under way, or gives it up. Does not throw. */
  void drop(Request request) {
    unfinished.remove(request);
    NativePath path = Objects.requireNonNull(request.path);
    while (request.underWay > 0) {
      try {
        awaitSome(path, request.deadlineNanos);
      } catch (FileException e) {
        if (!request.isDirect) {
          LOG.debug("Ds3fs gives up a request: {}", e.getMessage());
          request.clear();
          return;
        }
        // 3FS may still read or write memory of the caller: nothing but to wait helps.
        LockSupport.parkNanos(RETRY_NANOS);
      }
    }
    unfinished.remove(request);
    release(request);
  }

  private void awaitSome(NativePath path, long deadline) {
    if (!ring.await(deadline)) {
      throw new FileException(
          "3FS has not answered in time (timeout_ms) on " + mount.point() + " for",
          path,
          Errno.ETIMEDOUT);
    }
  }

  /** Asks for as much of what is left of a request as goes into one round. */
  private void nextRound(Request request) {
    // One for this method, so that the round does not end before all of it is asked for.
    request.underWay++;
    try {
      plan(request);
      long at = request.offset;
      for (int part = 0; part < request.parts; part++) {
        prepare(request, part, at);
        at += request.lengths[part];
      }
    } catch (FileException e) {
      request.fail("hf3fs_prep_io of", e.errno());
    } finally {
      oneEnded(request);
    }
  }

  private void plan(Request request) {
    IoVector memory = Objects.requireNonNull(request.memory);
    request.parts = 0;
    long done = 0;
    long stagedBytes = 0;
    for (int i = 0; i < memory.size(); i++) {
      long address = memory.address(i);
      long length = memory.length(i);
      if (length >= MIN_DIRECT_BYTES && mount.isOffered(address, length)) {
        if (request.parts == MAX_PARTS) {
          return;
        }
        request.addPart(address, length, NOT_STAGED);
        request.isDirect = true;
        mount.directBytes.add(length);
      } else {
        long staged = stage(request, done, length, stagedBytes);
        stagedBytes += staged;
        if (staged < length) {
          return;
        }
      }
      done += length;
    }
  }

  /**
   * Plans to move bytes through the staging memory.
   *
   * @param from where in the memory of the request they are
   * @param used bytes of the slot that are taken
   * @return how many fit
   */
  private long stage(Request request, long from, long length, long used) {
    if (request.slot < 0) {
      takeSlot(request);
    }
    long staged = Math.min(length, slots.slotBytes - used);
    int last = request.parts - 1;
    boolean extendsLast = last >= 0 && request.staged[last] != NOT_STAGED;
    if (staged == 0 || (!extendsLast && request.parts == MAX_PARTS)) {
      return 0;
    }
    long at = slots.offset(request.slot) + used;
    if (!isRead) {
      Objects.requireNonNull(request.memory).copyTo(from, slots.iov.segment, at, staged);
    }
    if (extendsLast) {
      request.lengths[last] += staged;
    } else {
      request.addPart(slots.iov.segment.address() + at, staged, at);
    }
    mount.copiedBytes.add(staged);
    return staged;
  }

  private void takeSlot(Request request) {
    for (request.slot = slots.take(); request.slot < 0; request.slot = slots.take()) {
      awaitSome(Objects.requireNonNull(request.path), request.deadlineNanos);
    }
  }

  private void prepare(Request request, int part, long at) {
    MemorySegment memory =
        request.staged[part] == NOT_STAGED ? mount.offeredHandle() : slots.iov.handle;
    long userdata = (long) request.number * MAX_PARTS + part;
    long address = request.addresses[part];
    long length = request.lengths[part];
    // First, as it may end any time from when it is prepared.
    request.underWay++;
    boolean isPrepared = false;
    try {
      while (!ring.prepare(memory, address, request.fd, at, length, userdata)) {
        awaitSome(Objects.requireNonNull(request.path), request.deadlineNanos);
      }
      isPrepared = true;
    } finally {
      if (!isPrepared) {
        request.underWay--;
      }
    }
  }

  /** Told by the ring that a request was added that repeats the first bytes of another, and ends as that does. */
  void repeated(long userdata) {
    request(userdata).underWay++;
  }

  /**
   * Told by the ring that a request has ended, and 3FS does not touch its memory any more.
   *
   * @param result bytes moved, or an error number, negated
   * @param isRepetition whether it was added by {@link #repeated}
   */
  void ended(long userdata, long result, boolean isRepetition) {
    Request request = request(userdata);
    if (!isRepetition && result < 0) {
      request.fail(isRead ? "USRBIO read of" : "USRBIO write of", (int) -result);
    } else if (!isRepetition) {
      request.results[(int) (userdata % MAX_PARTS)] = result;
    }
    oneEnded(request);
  }

  private Request request(long userdata) {
    return requests[(int) (userdata / MAX_PARTS)];
  }

  private void oneEnded(Request request) {
    if (--request.underWay > 0) {
      return;
    }
    IoVector memory = request.memory;
    if (memory != null && request.failedCall == null) {
      finishRound(request, memory);
    } else {
      request.isDone = true;
    }
    if (request.slot >= 0) {
      slots.giveBack(request.slot);
      request.slot = -1;
    }
    if (memory == null) {
      // Given up before; only its slot was still taken.
      free.push(request);
    }
  }

  /** Counts what was moved, up to the first part that fell short, and asks for the rest if there is any. */
  private void finishRound(Request request, IoVector memory) {
    long got = 0;
    boolean isShort = false;
    for (int part = 0; part < request.parts && !isShort; part++) {
      long result = Math.min(request.results[part], request.lengths[part]);
      if (isRead && request.staged[part] != NOT_STAGED) {
        memory.copyFrom(got, slots.iov.segment, request.staged[part], result);
      }
      got += result;
      isShort = result < request.lengths[part];
    }
    memory.advance(got);
    request.moved += got;
    request.offset += got;
    if (got == 0 && !isRead) {
      // Asking again would be a loop without end.
      request.fail("USRBIO wrote nothing to", Errno.EIO);
    }
    request.isDone = got == 0 || memory.byteSize() == 0;
    if (!request.isDone) {
      unfinished.push(request);
    }
  }

  /** Gives the ring back; no thread uses this any more. */
  void close() {
    // Answers to what was given up may have come since.
    if (ring.hasEnded()) {
      ring.close();
    } else {
      mount.leaveMemory();
    }
  }
}

package ucm.platform.io;

import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;

/**
 * An engine that has several requests under way: what of them are whole pages goes through a {@link
 * KernelQueue}, all gathered requests in one call. Its files were given to {@link
 * FileOperations#setDirect}.
 *
 * <p>What is left, the edges of a write and the rest of a call that fell short, is done on the
 * worker's thread; see {@link DirectIo}.
 */
public final class AsyncQueue implements IoQueue {

  private static final class Request {

    final AlignedVector aligned = new AlignedVector();
    @Nullable IoVector memory;
    @Nullable NativePath path;
    int fd;
    long offset;
    boolean isWrite;
    boolean isUnderWay;
    boolean isAtEnd;
    long result;
    long moved;
  }

  private final KernelQueue.Opener opener;
  private final int depth;
  private final DirectIo direct;
  private final KernelQueue.Listener listener = this::ended;
  private final Request[] requests;
  private @Nullable KernelQueue kernel;
  private long started;
  private long awaited;
  private int underWay;

  /**
   * A queue of one worker. The kernel is asked for its part with the first request, so that a thread
   * that makes none holds nothing.
   *
   * @param depth how many requests may be under way
   */
  public AsyncQueue(FileOperations files, KernelQueue.Opener opener, int depth) {
    this.opener = opener;
    this.depth = depth;
    this.direct = new DirectIo(files);
    this.requests = new Request[depth];
    Arrays.setAll(requests, i -> new Request());
  }

  @Override
  public int depth() {
    return depth;
  }

  @Override
  public void read(int fd, NativePath path, IoVector into, long offset) {
    Request request = next(fd, path, into, offset, false);
    if (into.byteSize() > 0) {
      request.aligned.planRead(into, offset);
      start(request);
    }
    started++;
  }

  @Override
  public void write(int fd, NativePath path, IoVector from, long offset) {
    Request request = next(fd, path, from, offset, true);
    if (offset % AlignedVector.PAGE != 0) {
      request.moved = direct.writeEdge(path, from, offset);
    }
    if (from.byteSize() >= AlignedVector.PAGE) {
      request.aligned.planWrite(from, offset + request.moved);
      start(request);
    }
    started++;
  }

  private Request next(int fd, NativePath path, IoVector memory, long offset, boolean isWrite) {
    Request request = requests[(int) (started % depth)];
    request.fd = fd;
    request.path = path;
    request.memory = memory;
    request.offset = offset;
    request.isWrite = isWrite;
    request.isAtEnd = false;
    request.result = 0;
    request.moved = 0;
    return request;
  }

  private void start(Request request) {
    KernelQueue queue = kernel;
    if (queue == null) {
      queue = opener.open(depth);
      kernel = queue;
    }
    AlignedVector aligned = request.aligned;
    int slot = (int) (started % depth);
    queue.gather(slot, request.isWrite, request.fd, aligned.pages(), aligned.offset());
    request.isUnderWay = true;
    underWay++;
  }

  private void ended(int slot, long result) {
    Request request = requests[slot];
    request.isUnderWay = false;
    request.isAtEnd = result == 0;
    request.result = result;
    underWay--;
  }

  @Override
  public long await() {
    Request request = requests[(int) (awaited % depth)];
    while (request.isUnderWay) {
      awaitSome();
    }
    awaited++;
    return finished(request);
  }

  private void awaitSome() {
    KernelQueue queue = Objects.requireNonNull(kernel);
    queue.submit();
    queue.await(listener);
  }

  /** Counts what the kernel has done, and does the rest. */
  private long finished(Request request) {
    IoVector memory = Objects.requireNonNull(request.memory);
    NativePath path = Objects.requireNonNull(request.path);
    if (request.result < 0) {
      throw new FileException(
          request.isWrite ? "asynchronous pwritev" : "asynchronous preadv",
          path,
          (int) -request.result);
    }
    long bytes =
        request.isWrite ? request.result : request.aligned.readDone(memory, request.result);
    memory.advance(bytes);
    request.moved += bytes;
    long left = memory.byteSize();
    if (left > 0) {
      long at = request.offset + request.moved;
      if (request.isWrite) {
        direct.writeFully(request.fd, path, memory, at);
        request.moved += left;
      } else if (!request.isAtEnd) {
        request.moved += direct.readFully(request.fd, path, memory, at);
      }
    }
    return request.moved;
  }

  @Override
  public void drain() {
    while (underWay > 0) {
      awaitSome();
    }
    started = 0;
    awaited = 0;
  }

  @Override
  public void close() {
    KernelQueue queue = kernel;
    if (queue != null) {
      kernel = null;
      queue.close();
    }
  }
}

package ucm.store.file.config;

import java.util.ArrayList;
import java.util.List;
import ucm.api.StoreException;
import ucm.platform.io.AioQueue;
import ucm.platform.io.AsyncQueue;
import ucm.platform.io.IoQueue;
import ucm.platform.io.IoQueues;
import ucm.platform.io.KernelQueue;
import ucm.platform.io.PsyncQueue;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.thread.ThreadEnd;

/** Makes the queues of the workers, as {@code io_engine} says. Thread-safe. */
public final class IoEngine implements IoQueues {

  // A group of shards has 4 MiB at the most, in steps of 512 KiB at least, and a footer.
  private static final int DEPTH = 16;

  private final FileStoreConfig config;
  private final FileOperations files;
  private final KernelQueue.Opener opener;

  // Guarded by this.
  private final List<KernelQueue> opened = new ArrayList<>();

  public IoEngine(FileStoreConfig config, FileOperations files) {
    this(config, files, AioQueue::new);
  }

  /** An engine on queues that are opened otherwise. */
  public IoEngine(FileStoreConfig config, FileOperations files, KernelQueue.Opener opener) {
    this.config = config;
    this.files = files;
    this.opener = opener;
  }

  /**
   * Finds out whether the kernel has what the engine needs.
   *
   * @throws StoreException when it refuses
   */
  public void probe() {
    if (config.usesAio()) {
      openOne(DEPTH).close();
    }
  }

  @Override
  public IoQueue newQueue() {
    return config.usesAio()
        ? new AsyncQueue(files, this::open, DEPTH)
        : new PsyncQueue(files, config.ioDirect());
  }

  private KernelQueue open(int depth) {
    KernelQueue queue = openOne(depth);
    synchronized (this) {
      opened.add(queue);
    }
    return queue;
  }

  private KernelQueue openOne(int depth) {
    try {
      return opener.open(depth);
    } catch (FileException e) {
      StoreKind store = config.kind();
      String key = store.key("io_engine");
      String advice =
          e.errno() == Errno.EAGAIN
              ? "the requests that all processes of this machine may have are used up: raise"
                  + " fs.aio-max-nr with sysctl, or set"
              : "the kernel, or the container this runs in, does not allow it: set";
      throw new StoreException(
          "%s cannot use %s: aio: %s; %s %2$s: psync"
              .formatted(store.name(), key, e.getMessage(), advice),
          e);
    }
  }

  /**
   * Gives back what the kernel holds; the workers have ended. Side by side: the kernel takes some
   * hundredths of a second for each aio context.
   */
  @Override
  public synchronized void close() {
    Thread.Builder closer = Thread.ofPlatform().daemon().name(config.kind().thread("close", 0));
    List<Thread> closers = opened.stream().map(queue -> closer.start(queue::close)).toList();
    opened.clear();
    ThreadEnd.await(closers);
  }
}

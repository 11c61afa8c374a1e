package ucm.store.ds3fs;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.MemoryRegion;
import ucm.platform.io.IoQueue;
import ucm.platform.io.IoQueues;
import ucm.platform.libc.FileException;

/** The mounts of an open store, and the rings of its workers on them. Thread-safe. */
final class RingQueues implements IoQueues {

  private static final Logger LOG = LoggerFactory.getLogger(Ds3fsStore.class);

  private final List<Mount> mounts;
  private final RegisteredFiles files;
  private final Ds3fsConfig config;

  // Guarded by this.
  private final List<RingQueue> queues = new ArrayList<>();
  private boolean isOffered;
  private boolean isClosed;

  RingQueues(List<Mount> mounts, RegisteredFiles files, Ds3fsConfig config) {
    this.mounts = mounts;
    this.files = files;
    this.config = config;
  }

  @Override
  public IoQueue newQueue() {
    RingQueue queue = new RingQueue(mounts, files, config);
    synchronized (this) {
      queues.add(queue);
    }
    return queue;
  }

  /** See {@link ucm.api.MemoryProvider#offerMemory}. */
  synchronized @Nullable MemoryRegion offer(long byteSize) {
    if (isOffered || isClosed) {
      return null;
    }
    if (mounts.size() > 1) {
      LOG.info(
          "Ds3fs lends no memory to the upper stage: its directories are on several mounts {},"
              + " and each maps memory of its own; bytes are copied once",
          mounts);
      return null;
    }
    long free = SharedMemorySpace.now().freeBytes();
    if (byteSize > free) {
      LOG.warn(
          "Ds3fs lends no memory to the upper stage: {} bytes are asked for, and {} has {} free;"
              + " bytes are copied once",
          byteSize,
          SharedMemorySpace.FOLDER,
          free);
      return null;
    }
    try {
      MemoryRegion region = MemoryRegion.host(mounts.getFirst().offer(byteSize));
      isOffered = true;
      return region;
    } catch (FileException e) {
      LOG.warn(
          "Ds3fs lends no memory to the upper stage: {}; bytes are copied once", e.getMessage());
      return null;
    }
  }

  @Override
  public synchronized void close() {
    if (!isClosed) {
      isClosed = true;
      queues.forEach(RingQueue::close);
      mounts.forEach(Mount::close);
    }
  }
}

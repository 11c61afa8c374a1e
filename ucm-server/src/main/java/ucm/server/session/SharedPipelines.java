package ucm.server.session;

import java.time.Duration;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.FlushResult;
import ucm.api.StoreException;
import ucm.pipeline.Pipeline;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.engine.KvLayout;

/**
 * The open pipelines: one for each configuration and layout, for all who use it. One that is not used stays
 * open for a while, so that an engine which starts again finds its pool full; but it gives way to one that
 * finds no room. Thread-safe.
 */
final class SharedPipelines implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(SharedPipelines.class);
  private static final long LINGER_NANOS = TimeUnit.MINUTES.toNanos(10);

  private static final Duration FLUSH = Duration.ofSeconds(60);

  /** Two files of one text have other directories when these are relative. */
  record Key(String config, Map<String, List<String>> directories, KvLayout layout) {}

  private static final class Shared {
    final Pipeline pipeline;
    int users;
    long unusedSince;

    Shared(Pipeline pipeline) {
      this.pipeline = pipeline;
    }
  }

  private final LongSupplier clock;
  // Guarded by this.
  private final Map<Key, Shared> open = new HashMap<>();

  SharedPipelines(LongSupplier clock) {
    this.clock = clock;
  }

  /**
   * The pipeline of a configuration, opened when there is none.
   *
   * @throws StoreException when it cannot be opened, also with the room of those that are not used
   */
  synchronized Pipeline acquire(Key key, ConnectorSetup setup) {
    Shared shared = open.get(key);
    if (shared == null) {
      shared = new Shared(openWithRoom(setup));
      open.put(key, shared);
    }
    shared.users++;
    return shared.pipeline;
  }

  private Pipeline openWithRoom(ConnectorSetup setup) {
    try {
      return setup.openPipeline(0);
    } catch (StoreException e) {
      int closed = closeUnused(Long.MIN_VALUE);
      if (closed == 0) {
        throw e;
      }
      LOG.info(
          "{} pipelines of engines that have ended were closed for a new one, which could not be"
              + " opened beside them: {}",
          closed,
          e.getMessage());
      return setup.openPipeline(0);
    }
  }

  /** A user is done with it. */
  synchronized void release(Key key) {
    Shared shared = open.get(key);
    if (shared != null && --shared.users == 0) {
      shared.unusedSince = clock.getAsLong();
    }
  }

  /** Closes those that were not used for long. */
  synchronized void sweep() {
    closeUnused(LINGER_NANOS);
  }

  private int closeUnused(long longerThanNanos) {
    long now = clock.getAsLong();
    int closed = 0;
    for (Iterator<Shared> all = open.values().iterator(); all.hasNext(); ) {
      Shared shared = all.next();
      if (shared.users == 0 && now - shared.unusedSince > longerThanNanos) {
        all.remove();
        close(shared.pipeline);
        closed++;
      }
    }
    return closed;
  }

  @Override
  public synchronized void close() {
    open.values().forEach(shared -> close(shared.pipeline));
    open.clear();
  }

  private static void close(Pipeline pipeline) {
    try (pipeline) {
      FlushResult flushed = pipeline.flush(FLUSH);
      if (!flushed.ok()) {
        LOG.warn(
            "{}: {} blocks were not stored and {} are still on their way after {} s",
            pipeline,
            flushed.failedCount(),
            flushed.pendingBlocks(),
            FLUSH.toSeconds());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (RuntimeException e) {
      LOG.warn("{} did not close well: {}", pipeline, e.toString());
    }
  }
}

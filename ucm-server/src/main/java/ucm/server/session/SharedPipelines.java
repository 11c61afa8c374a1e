package ucm.server.session;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.FlushResult;
import ucm.api.StoreException;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.engine.KvLayout;

/**
 * The open pipelines: one for each configuration and layout, for all who use it. One that is not used stays
 * open for a while, so that an engine which starts again finds its pool full; but one with a buffer gives
 * way to any that is opened, and all do to one that finds no room. Thread-safe.
 */
final class SharedPipelines implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(SharedPipelines.class);
  private static final long LINGER_NANOS = TimeUnit.MINUTES.toNanos(10);

  private static final Duration FLUSH = Duration.ofSeconds(60);

  /** What two pipelines are alike by: their stages, the values of these, and their blocks. */
  record Key(PipelineSpec stages, Map<String, Object> values, KvLayout layout) {

    static Key of(UcmConfig config, KvLayout layout) {
      Map<String, Object> values = new HashMap<>();
      config
          .connector()
          .forEach(
              (name, setting) -> {
                if (setting.raw() != null) {
                  values.put(name, setting.raw());
                }
              });
      return new Key(config.openedPipeline(), values, layout);
    }
  }

  /** An open pipeline and its configuration, as far as engines do not give it. */
  record Opened(Pipeline pipeline, UcmConfig config) {}

  private static final class Shared {
    final Pipeline pipeline;
    UcmConfig config;
    int users;
    long unusedSince;

    Shared(Pipeline pipeline, UcmConfig config) {
      this.pipeline = pipeline;
      this.config = config;
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
  synchronized Pipeline acquire(UcmConfig config, KvLayout layout, ConnectorSetup setup) {
    Key key = Key.of(config, layout);
    Shared shared = open.get(key);
    if (shared == null) {
      shared = new Shared(openWithRoom(setup), config);
      open.put(key, shared);
    }
    shared.users++;
    return shared.pipeline;
  }

  private Pipeline openWithRoom(ConnectorSetup setup) {
    // What engines that have ended left in memory is of less use than what this one brings.
    closeUnused(Long.MIN_VALUE, key -> key.stages().stages().contains("Cache"));
    try {
      return setup.openPipeline(0);
    } catch (StoreException e) {
      int closed = closeUnused(Long.MIN_VALUE, _ -> true);
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

  /** Those that are open now, used or not. */
  synchronized List<Opened> all() {
    return open.values().stream().map(one -> new Opened(one.pipeline, one.config)).toList();
  }

  /** A pipeline has taken values of another configuration: who has that one shares it from now on. */
  synchronized void reloaded(Pipeline pipeline, UcmConfig config, KvLayout layout) {
    Key now = Key.of(config, layout);
    Key before = keyOf(pipeline);
    Shared shared = before == null ? null : open.get(before);
    if (shared == null) {
      return;
    }
    shared.config = config;
    if (open.putIfAbsent(now, shared) == null) {
      open.remove(before);
    }
  }

  private @Nullable Key keyOf(Pipeline pipeline) {
    for (Map.Entry<Key, Shared> entry : open.entrySet()) {
      if (entry.getValue().pipeline == pipeline) {
        return entry.getKey();
      }
    }
    return null;
  }

  /** A user is done with it. */
  synchronized void release(Pipeline pipeline) {
    Key key = keyOf(pipeline);
    Shared shared = key == null ? null : open.get(key);
    if (shared != null && --shared.users == 0) {
      shared.unusedSince = clock.getAsLong();
    }
  }

  /** Closes those that were not used for long. */
  synchronized void sweep() {
    closeUnused(LINGER_NANOS, _ -> true);
  }

  private int closeUnused(long longerThanNanos, Predicate<Key> which) {
    long now = clock.getAsLong();
    int closed = 0;
    for (var all = open.entrySet().iterator(); all.hasNext(); ) {
      Map.Entry<Key, Shared> entry = all.next();
      Shared shared = entry.getValue();
      if (shared.users == 0
          && now - shared.unusedSince > longerThanNanos
          && which.test(entry.getKey())) {
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
        LOG.warn("{} closes: {}", pipeline, missing(flushed));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (RuntimeException e) {
      LOG.warn("{} did not close well: {}", pipeline, e.toString());
    }
  }

  /** What a flush of {@link #FLUSH} has not found stored. */
  static String missing(FlushResult flushed) {
    List<String> parts = new ArrayList<>();
    if (flushed.failedCount() > 0) {
      Throwable cause = flushed.cause();
      parts.add(
          flushed.failedCount()
              + " blocks could not be stored"
              + (cause == null ? "" : ", the first because of: " + cause.getMessage()));
    }
    if (flushed.pendingBlocks() > 0) {
      parts.add(
          flushed.pendingBlocks()
              + " blocks are still on their way after "
              + FLUSH.toSeconds()
              + " s");
    }
    return String.join("; ", parts);
  }
}

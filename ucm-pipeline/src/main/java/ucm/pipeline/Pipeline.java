package ucm.pipeline;

import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.IndexLookup;
import ucm.api.MemoryProvider;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreLife;
import ucm.api.StoreMetrics;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.admin.Reloadable;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConfigCheck;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.UcmConfig;

/**
 * Several stores chained into one: {@code Cache|Posix}. What is asked of the pipeline is asked of its
 * head, and each stage asks the next one.
 *
 * <p>Stages open from the tail, each with the next stage, and close from the
 * head. When one fails to open, those already open are closed, and the failure names the stage and
 * its place in the chain. The pipeline owns its stages: closing it closes them all, and goes on when
 * one of them fails. Thread-safe as every store is.
 */
@StoreName("Pipeline")
public final class Pipeline implements Store, IndexLookup, MemoryProvider, Reloadable {

  private static final Logger LOG = LoggerFactory.getLogger(Pipeline.class);

  private final PipelineSpec spec;
  private final List<Store> stages;
  private final Store head;
  private final Function<String, ? extends @Nullable StoreMetrics> metrics;
  private final StoreLife life;

  private Pipeline(
      PipelineSpec spec,
      List<Store> stages,
      Function<String, ? extends @Nullable StoreMetrics> metrics) {
    this.spec = spec;
    this.stages = stages;
    this.head = stages.getFirst();
    this.metrics = metrics;
    this.life = new StoreLife(toString());
  }

  /**
   * Builds a pipeline, new: every name is resolved before any stage is built. {@link #configure} and
   * {@link #open(StoreContext)} are up to the caller.
   *
   * @throws ucm.pipeline.catalog.UnknownStageException when a stage is not there
   * @throws StoreException when a stage cannot be created
   */
  public static Pipeline of(PipelineSpec spec, StoreCatalog catalog) {
    return build(spec, catalog, stage -> null);
  }

  /** Opens a pipeline that counts nothing; see {@link #open(UcmConfig, StoreCatalog, Function)}. */
  public static Pipeline open(UcmConfig config, StoreCatalog catalog) {
    return open(config, catalog, stage -> StoreMetrics.NONE);
  }

  /**
   * Builds, configures and opens a pipeline.
   *
   * @param metrics gives each stage, by its name, the place where it counts
   * @return an open pipeline, which the caller closes
   * @throws ConfigException when the configuration has an error; all of them are in its report
   * @throws ucm.pipeline.catalog.UnknownStageException when a stage is not there
   * @throws StoreException when a stage cannot be created or opened
   */
  public static Pipeline open(
      UcmConfig config, StoreCatalog catalog, Function<String, StoreMetrics> metrics) {
    PipelineSpec spec =
        config
            .findPipeline(new ArrayList<>())
            .orElseThrow(() -> new ConfigException(config.check(catalog)));
    Pipeline pipeline = build(spec, catalog, metrics);
    pipeline.life.configured();
    new ConfigCheck(config, catalog)
        .configure(pipeline.spec, pipeline.stages)
        .requireNoErrors()
        .findings()
        .forEach(finding -> LOG.warn("{}", finding));
    pipeline.open(StoreContext.of(null));
    return pipeline;
  }

  private static Pipeline build(
      PipelineSpec spec,
      StoreCatalog catalog,
      Function<String, ? extends @Nullable StoreMetrics> metrics) {
    catalog.require(spec);
    List<Store> stages = spec.stages().stream().map(catalog::create).toList();
    return new Pipeline(spec, stages, metrics);
  }

  /** Its stages by name. */
  public PipelineSpec spec() {
    return spec;
  }

  /** Its stages, the one nearest the engine first; they belong to the pipeline. */
  public List<Store> stages() {
    return stages;
  }

  @Override
  public boolean keepsBytes() {
    return stages.stream().allMatch(Store::keepsBytes);
  }

  /** The keys of all stages; of a name that several stages read, the declaration nearest the head. */
  @Override
  public List<ConfigKey<?>> configKeys() {
    Map<String, ConfigKey<?>> keys = new LinkedHashMap<>();
    for (Store stage : stages) {
      stage.configKeys().forEach(key -> keys.putIfAbsent(key.name(), key));
    }
    return List.copyOf(keys.values());
  }

  /** What its stages suggest; of a key that several suggest, the value of the one nearest the head. */
  @Override
  public Map<String, Object> suggestions() {
    return suggestions(0);
  }

  private Map<String, Object> suggestions(int from) {
    Map<String, Object> all = new LinkedHashMap<>();
    stages
        .subList(from, stages.size())
        .forEach(stage -> stage.suggestions().forEach(all::putIfAbsent));
    return all;
  }

  @Override
  public void configure(StoreConfig config) {
    life.configured();
    for (int i = 0; i < stages.size(); i++) {
      stages.get(i).configure(config.withSuggestions(suggestions(i + 1)));
    }
  }

  @Override
  public void open(StoreContext context) {
    life.opened();
    Store next = context.next();
    List<Store> opened = new ArrayList<>();
    for (int i = stages.size() - 1; i >= 0; i--) {
      try {
        stages.get(i).open(new StageContext(context, next, metrics.apply(spec.stages().get(i))));
      } catch (RuntimeException | Error e) {
        life.closed();
        closeAll(opened, e);
        throw failure(i, e);
      }
      next = stages.get(i);
      opened.addFirst(next);
    }
    LOG.debug("Opened {}", this);
  }

  /** What one stage is given: the next stage and its place to count; the rest is handed on. */
  private record StageContext(StoreContext outer, @Nullable Store next, @Nullable StoreMetrics own)
      implements StoreContext {

    @Override
    public StoreMetrics metrics() {
      return own == null ? outer.metrics() : own;
    }

    @Override
    public LongSupplier nanoClock() {
      return outer.nanoClock();
    }
  }

  private StoreException failure(int index, Throwable cause) {
    if (cause instanceof VirtualMachineError fatal) {
      throw fatal;
    }
    return new StoreException(
        "stage %s (%s of %s in %s) failed to open: %s"
            .formatted(
                spec.stages().get(index), index + 1, stages.size(), spec, cause.getMessage()),
        cause);
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    return ask(() -> head.lookup(ids));
  }

  @Override
  public @Nullable BitSet lookupKnown(BlockIds ids) {
    return ask(() -> head instanceof IndexLookup index ? index.lookupKnown(ids) : null);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    return ask(() -> head.lookupPrefix(ids));
  }

  @Override
  public void prefetch(BlockIds ids) {
    tell(() -> head.prefetch(ids));
  }

  @Override
  public void notePrompt(BlockIds ids) {
    tell(() -> head.notePrompt(ids));
  }

  @Override
  public Task load(Transfer transfer) {
    return ask(() -> head.load(transfer));
  }

  @Override
  public Task dump(Transfer transfer) {
    return ask(() -> head.dump(transfer));
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return ask(() -> head.flush(timeout));
  }

  @Override
  public boolean hasRoom(long bytes) {
    return ask(() -> head.hasRoom(bytes));
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return ask(() -> head.durable(ids));
  }

  @Override
  public boolean canRemove() {
    return head.canRemove();
  }

  @Override
  public BitSet remove(BlockIds ids) {
    return ask(() -> head.remove(ids));
  }

  /** Has each stage take what it can; of a stage that can take nothing, all live keys stay. */
  @Override
  public void reload(StoreConfig config) {
    tell(
        () -> {
          for (int i = 0; i < stages.size(); i++) {
            if (stages.get(i) instanceof Reloadable stage) {
              stage.reload(config.withSuggestions(suggestions(i + 1)));
            }
          }
        });
  }

  @Override
  public @Nullable MemoryRegion offerMemory(long byteSize) {
    return ask(
        () -> head instanceof MemoryProvider provider ? provider.offerMemory(byteSize) : null);
  }

  private interface Question<T extends @Nullable Object, E extends Exception> {
    T ask() throws E;
  }

  private void tell(Runnable hint) {
    var _ =
        ask(
            () -> {
              hint.run();
              return true;
            });
  }

  /** A caller that meets a close is told of the pipeline's, not of a stage's. */
  private <T extends @Nullable Object, E extends Exception> T ask(Question<T, E> question)
      throws E {
    life.requireOpen();
    try {
      return question.ask();
    } catch (StoreClosedException e) {
      life.requireOpen();
      throw e; // A stage was closed from outside.
    }
  }

  /**
   * Closes the stages from the head to the tail, all of them also when one fails; the first failure
   * is the cause of what is thrown, the others are suppressed in it.
   */
  @Override
  public synchronized void close() {
    if (!life.closed()) {
      return;
    }
    Throwable first = closeAll(stages, null);
    if (first != null) {
      throw new StoreException(this + " did not close cleanly: " + first.getMessage(), first);
    }
    LOG.debug("Closed {}", this);
  }

  /** Closes all; what fails is suppressed in {@code failure}, or becomes it when there is none. */
  private static @Nullable Throwable closeAll(List<Store> stages, @Nullable Throwable failure) {
    Throwable first = failure;
    for (Store stage : stages) {
      try {
        stage.close();
      } catch (RuntimeException | Error e) {
        if (first == null) {
          first = e;
        } else {
          first.addSuppressed(e);
        }
      }
    }
    return first;
  }

  /** For example {@code Pipeline Cache|Posix}. */
  @Override
  public String toString() {
    return "Pipeline " + spec;
  }
}

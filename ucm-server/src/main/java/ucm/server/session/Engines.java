package ucm.server.session;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.FlushResult;
import ucm.api.StoreException;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.config.ConfigKey;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.Generations;
import ucm.pipeline.connector.statistics.MetricsScopes;
import ucm.server.device.WorkerCopies.SharedDevices;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.ProtocolException;
import ucm.server.session.SharedPipelines.Opened;

/** The engines that are connected, by their names. Thread-safe. */
public final class Engines implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Engines.class);
  // After so long an observer is told how far it is.
  private static final Duration STEP = Duration.ofMillis(200);

  /**
   * What all engines of a daemon share.
   *
   * @param catalog the stores that are there
   * @param metrics where engines count
   * @param pipelines those that are open
   * @param devices those that the daemon copies with
   * @param segmentPrefix path of staging segments, without what tells them apart
   * @param stagingBytes most bytes of staging for an engine, all its ranks together
   * @param clock monotonic nanoseconds
   * @param generations which blocks engines have disowned
   * @param admission whether blocks are stored
   * @param process what of the settings concerns the whole process
   */
  record Context(
      StoreCatalog catalog,
      MetricsScopes metrics,
      SharedPipelines pipelines,
      SharedDevices devices,
      String segmentPrefix,
      long stagingBytes,
      LongSupplier clock,
      Generations generations,
      Admission admission,
      ProcessSettings process) {

    /** The keys of the stages of a configuration. */
    List<ConfigKey<?>> keys(UcmConfig config) {
      return catalog.configKeys(config.pipeline().stages()).values().stream()
          .flatMap(List::stream)
          .toList();
    }

    Path segmentPath(int generation, int number) {
      return Path.of(segmentPrefix + Integer.toHexString(generation) + "-" + number);
    }
  }

  /** Takes what concerns the process that all engines share. */
  public interface ProcessSettings {
    /** Takes the values of some keys; returns by key why a value is not taken. */
    Map<String, String> apply(ConnectorSettings settings, Set<String> keys);
  }

  /** What clients call a configuration, and its text. */
  private record Source(String name, String yaml) {}

  /** An engine's name and its launch, as its launch line may name the id of another engine. */
  private record Key(String instance, String launch) {}

  private record Connected(EngineFields fields, EngineSession session) {}

  private final Context context;
  // Guarded by this.
  private final Map<Key, Connected> sessions = new LinkedHashMap<>();
  private final Set<EngineSession> ending = new LinkedHashSet<>();
  // Configurations that were reloaded, and what is in force: for engines that come back with the
  // old text.
  private final Map<Source, UcmConfig> reloaded = new HashMap<>();

  /**
   * No engine yet.
   *
   * @param segmentPrefix path of staging segments, without what tells them apart
   * @param stagingBytes most bytes of staging for an engine
   */
  public Engines(
      StoreCatalog catalog,
      MetricsScopes metrics,
      String segmentPrefix,
      long stagingBytes,
      LongSupplier clock,
      ProcessSettings process) {
    context =
        new Context(
            catalog,
            metrics,
            new SharedPipelines(clock),
            new SharedDevices(),
            segmentPrefix,
            stagingBytes,
            clock,
            new Generations(),
            new Admission(),
            process);
  }

  /**
   * A connection of an engine begins. Of two engines with one name, the second one has its launch in its
   * name here.
   *
   * @param launch tells an engine from another one of its name; empty when the client does not say
   * @throws ProtocolException when its configuration is bad, or other connections of it said something else
   */
  public synchronized EngineSession open(EngineFields fields, String launch)
      throws ProtocolException {
    Key key = new Key(fields.instance(), launch);
    Connected connected = sessions.get(key);
    if (connected == null) {
      boolean taken = sessions.keySet().stream().anyMatch(one -> one.instance.equals(key.instance));
      EngineFields own = taken ? fields.as(fields.engineId() + "-" + launch) : fields;
      UcmConfig read = config(fields.configName(), fields.config());
      UcmConfig config =
          reloaded.getOrDefault(new Source(fields.configName(), fields.config()), read);
      context
          .process
          .apply(config.settings(), config.settings().ofProcess())
          .forEach((name, why) -> LOG.warn("{}: {}: {}", own.instance(), name, why));
      connected = new Connected(fields, new EngineSession(context, own, config));
      sessions.put(key, connected);
    } else if (!connected.fields.equals(fields)) {
      throw new ProtocolException(
          // The one that is connected may be ending.
          ProtocolException.NOT_NOW,
          String.format(
              "engine %s is connected already and said something else of its "
                  + "model, ranks or configuration: give each engine an id of its own",
              fields.instance()));
    }
    connected.session.connections++;
    return connected.session;
  }

  /**
   * The configuration of a client.
   *
   * @param name of the file it comes from, or what messages are to call it
   * @throws ProtocolException when it is bad
   */
  public static UcmConfig config(String name, String yaml) throws ProtocolException {
    try {
      UcmConfig config = UcmConfig.received(name, yaml);
      // Both throw for what is wrong with the file, before any worker waits for its slots.
      config.settings();
      // All ranks share this process, which is what a shared buffer is for.
      return config.pipeline().stages().contains("Cache")
          ? config.with(Map.of("share_buffer_enable", false), "ucm serve")
          : config;
    } catch (StoreException e) {
      throw new ProtocolException(ProtocolException.REFUSED_ENGINE, String.valueOf(e.getMessage()));
    }
  }

  /**
   * A connection of an engine has ended; the last one ends the engine. Waits for what is being stored, and
   * other engines do not.
   */
  public void release(EngineSession session) {
    synchronized (this) {
      if (--session.connections > 0 || !sessions.values().removeIf(one -> one.session == session)) {
        return;
      }
      ending.add(session);
    }
    try {
      session.close();
    } finally {
      synchronized (this) {
        ending.remove(session);
      }
    }
  }

  /**
   * Has the engines of a configuration take new values of those keys that may change while they run.
   *
   * @param name what the engines call the configuration
   * @throws ProtocolException when the new text is bad; nothing has changed then
   */
  public Map<String, Object> reload(String name, String yaml) throws ProtocolException {
    UcmConfig asked = config(name, yaml);
    ConfigReport report = asked.check(context.catalog);
    if (report.hasErrors()) {
      throw new ProtocolException(ProtocolException.REFUSED_ENGINE, report.text());
    }
    List<Map<String, Object>> engines = new ArrayList<>();
    boolean complete = true;
    Set<String> others = new LinkedHashSet<>();
    for (EngineSession session : all()) {
      EngineFields fields = session.fields();
      if (fields.configName().equals(name)) {
        Map<String, Object> one = session.reload(asked);
        engines.add(one);
        complete &= Map.of().equals(one.get("not_taken"));
        synchronized (this) {
          reloaded.put(new Source(name, fields.config()), session.config());
        }
      } else {
        others.add(fields.configName());
      }
    }
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("configuration", name);
    answer.put("engines", engines);
    answer.put("other_configurations", others);
    answer.put("complete", complete && !engines.isEmpty());
    return answer;
  }

  /**
   * Stores nothing more of what engines bring, and waits until what they have brought is stored. Loads go on.
   *
   * @param most how long to wait
   */
  public Map<String, Object> drain(Duration most, Observer observer) throws InterruptedException {
    context.admission.close(true);
    LOG.info("drained: no blocks are stored any more");
    long end = System.nanoTime() + most.toNanos();
    int first = Math.max(1, saves(Duration.ZERO));
    int saves = first;
    while (saves > 0 && System.nanoTime() < end && !observer.isStopped()) {
      saves = saves(STEP);
      observer.at(Math.max(0, first - saves), first);
    }
    long pending = 0;
    long failed = 0;
    for (Opened opened : context.pipelines.all()) {
      FlushResult flushed;
      do {
        long left = Math.clamp(end - System.nanoTime(), 0, STEP.toNanos());
        flushed = opened.pipeline().flush(Duration.ofNanos(left));
        failed += flushed.failedCount();
        observer.at(first - saves, first);
      } while (flushed.pendingBlocks() > 0 && System.nanoTime() < end && !observer.isStopped());
      pending += flushed.pendingBlocks();
    }
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("drained", true);
    answer.put("saves_left", saves);
    answer.put("pending_blocks", pending);
    answer.put("failed_blocks", failed);
    answer.put("complete", saves == 0 && pending == 0 && failed == 0);
    return answer;
  }

  private int saves(Duration most) throws InterruptedException {
    int left = 0;
    for (EngineSession session : all()) {
      left += session.awaitSaves(most);
    }
    return left;
  }

  /** Stores again what engines bring. */
  public Map<String, Object> fill() {
    context.admission.close(false);
    LOG.info("not drained any more: blocks are stored");
    return Map.of("drained", false);
  }

  /** Whether nothing is stored any more. */
  public boolean isDrained() {
    return context.admission.isClosed();
  }

  /** Empties all open pipelines; what engines have planned to save so far is not stored. */
  public Map<String, Object> clear(Observer observer) throws InterruptedException {
    all().forEach(EngineSession::dropSaves);
    LOG.info("all blocks of {} pipelines are removed", context.pipelines.all().size());
    return new Clearing(observer).run(context.pipelines.all());
  }

  /** Ends what took too long; to be called every few seconds. */
  public void sweep() {
    all().forEach(EngineSession::sweep);
    context.pipelines().sweep();
  }

  /** What people ask about each engine. */
  public List<Map<String, Object>> status() {
    return all().stream().map(EngineSession::status).toList();
  }

  private synchronized List<EngineSession> all() {
    // In the order in which they came.
    List<EngineSession> all = new ArrayList<>(ending);
    sessions.values().forEach(one -> all.add(one.session));
    return all;
  }

  /** Ends all engines, and closes the pipelines: what is on its way to storage gets there. */
  @Override
  public void close() {
    all().forEach(EngineSession::close);
    synchronized (this) {
      sessions.clear();
    }
    context.pipelines().close();
    context.devices().close();
  }
}

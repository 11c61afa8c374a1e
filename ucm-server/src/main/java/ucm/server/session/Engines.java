package ucm.server.session;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import ucm.api.StoreException;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.Generations;
import ucm.pipeline.connector.statistics.MetricsScopes;
import ucm.server.device.DeviceCopies.SharedDevices;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.ProtocolException;

/** The engines that are connected, by their names. Thread-safe. */
public final class Engines implements AutoCloseable {

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
   */
  record Context(
      StoreCatalog catalog,
      MetricsScopes metrics,
      SharedPipelines pipelines,
      SharedDevices devices,
      String segmentPrefix,
      long stagingBytes,
      LongSupplier clock,
      Generations generations) {

    Path segmentPath(int generation, int number) {
      return Path.of(segmentPrefix + Integer.toHexString(generation) + "-" + number);
    }
  }

  /** An engine's name and its launch, as its launch line may name the id of another engine. */
  private record Key(String instance, String launch) {}

  private record Connected(EngineFields fields, EngineSession session) {}

  private final Context context;
  // Guarded by this.
  private final Map<Key, Connected> sessions = new LinkedHashMap<>();
  private final Set<EngineSession> ending = new LinkedHashSet<>();

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
      LongSupplier clock) {
    context =
        new Context(
            catalog,
            metrics,
            new SharedPipelines(clock),
            new SharedDevices(),
            segmentPrefix,
            stagingBytes,
            clock,
            new Generations());
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
      UcmConfig config = config(fields.configName(), fields.config());
      connected = new Connected(fields, new EngineSession(context, own, config));
      sessions.put(key, connected);
    } else if (!connected.fields.equals(fields)) {
      throw new ProtocolException(
          ProtocolException.REFUSED_ENGINE,
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

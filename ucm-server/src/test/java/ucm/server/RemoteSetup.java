package ucm.server;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.lite.trace.FileFault;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvCaches;
import ucm.pipeline.connector.engine.KvIdentity;
import ucm.pipeline.hash.BlockHasher;
import ucm.pipeline.hash.PromptVariant;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.GroupsMessage;
import ucm.server.protocol.IdentityMessage;
import ucm.server.protocol.WorkerFields;

/**
 * What both sides of an engine are made from when its ranks are processes: the daemon's socket, the
 * configuration, and the engine itself. All processes of the engine say the same. Immutable.
 *
 * <pre>{@code
 * RemoteSetup setup = RemoteSetup.read(Daemon.defaultSocket(), file, spec);
 * RemoteScheduler scheduler = setup.scheduler();           // in one process
 * Store slots = setup.slots(rank);                         // in the process of each rank
 * WorkerConnector worker = setup.worker(rank, caches, slots);
 * }</pre>
 *
 * <p>The engine never stops because of the daemon. While none answers, nothing is found or saved, and the
 * connection comes back by itself.
 */
public final class RemoteSetup {

  private final Path socket;
  private final EngineSpec spec;
  private final EngineFields fields;
  private final UcmConfig config;
  private final ConnectorSetup setup;

  /** A plan's ids say where blocks are, the same for each rank. */
  private static final class SlotNames implements BlockHasher {

    @Override
    public BlockHasher forVariant(PromptVariant variant) {
      return this;
    }

    @Override
    public BlockIds hash(int[] tokens, int from, int to, int size, @Nullable BlockIds parent) {
      throw new UnsupportedOperationException("the daemon names blocks");
    }

    @Override
    public BlockIds ofRank(int rank, BlockIds rankZeroIds) {
      return rankZeroIds;
    }
  }

  private RemoteSetup(Path socket, String name, String yaml, EngineSpec spec) {
    this.socket = socket;
    this.spec = spec;
    config = UcmConfig.received(name, yaml);
    setup = ConnectorSetup.of(config, StoreCatalog.find(), spec).withBlockHasher(new SlotNames());
    fields =
        new EngineFields(
            spec.instance(),
            0,
            spec.model(),
            spec.dtype(),
            spec.tpSize(),
            spec.mla(),
            spec.blockTokens(),
            EngineFields.BOTH,
            name,
            yaml);
  }

  /**
   * A setup from a file.
   *
   * @throws ucm.pipeline.config.ConfigException when it cannot be read or is no YAML map
   */
  public static RemoteSetup read(Path socket, Path file, EngineSpec spec) {
    // This says what is wrong with the file.
    UcmConfig _ = UcmConfig.read(file);
    try {
      return of(socket, file.toAbsolutePath().toString(), Files.readString(file), spec);
    } catch (IOException e) {
      throw new StoreException("cannot read " + file + ": " + FileFault.of(e), e);
    }
  }

  /**
   * A setup from a text. Connects to nothing.
   *
   * @param socket of the daemon
   * @param name of the configuration, for messages; when it is the absolute path of a file, relative paths
   *     in the text begin at its folder
   * @param yaml its text, which the daemon reads
   * @throws ucm.pipeline.config.ConfigException when it is no YAML map, or a value of its top level is bad
   * @throws StoreException when the engine and the configuration do not fit
   */
  public static RemoteSetup of(Path socket, String name, String yaml, EngineSpec spec) {
    return new RemoteSetup(socket, name, yaml, spec);
  }

  /**
   * Connects the scheduler side.
   *
   * @throws StoreException when the daemon refuses the engine
   */
  public RemoteScheduler scheduler() {
    return new RemoteScheduler(socket, spec, fields, config.settings().saveDecodeBlocks());
  }

  /**
   * Connects a rank and maps its slots.
   *
   * @param rank tensor-parallel rank, 0 to {@code tpSize} (exclusive)
   * @return what {@link #worker} copies from and to, to be closed after it
   * @throws StoreException when the daemon refuses the rank
   */
  public Store slots(int rank) {
    KvIdentity of = spec.identity();
    return new SlotStore(
        socket,
        fields,
        new IdentityMessage("", of.config(), of.weights(), ""),
        new WorkerFields(rank, spec.kv(), of.layout(), GroupsMessage.NONE, null));
  }

  /**
   * Makes the worker side of a rank, which does what {@link RemoteScheduler#plan} says.
   *
   * @param caches its KV cache, in host memory
   * @param slots from {@link #slots}
   * @throws StoreException when the KV cache is not as the {@link EngineSpec} says
   */
  public WorkerConnector worker(int rank, KvCaches caches, Store slots) {
    return setup.worker(rank, caches, slots);
  }
}

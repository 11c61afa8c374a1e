package ucm.server;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.Principal;
import java.util.BitSet;
import java.util.List;
import java.util.UUID;
import java.util.function.Consumer;
import jdk.net.ExtendedSocketOptions;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.StoreException;
import ucm.pipeline.config.UcmConfig;
import ucm.server.device.WorkerCopies;
import ucm.server.protocol.DeviceFields.CopyMessage;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.Frame;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.GroupsMessage;
import ucm.server.protocol.HelloMessage;
import ucm.server.protocol.IdentityMessage;
import ucm.server.protocol.LookupMessage;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.NamedFields;
import ucm.server.protocol.NamedFields.BlocksMessage;
import ucm.server.protocol.NamedFields.ChunksMessage;
import ucm.server.protocol.NamedFields.RegionMessage;
import ucm.server.protocol.PlanMessage;
import ucm.server.protocol.PlanMessage.PlannedMessage;
import ucm.server.protocol.ProtocolException;
import ucm.server.protocol.StageMessage;
import ucm.server.protocol.WorkerFields;
import ucm.server.session.EngineSession;
import ucm.server.session.EngineSettings;
import ucm.server.session.Engines;
import ucm.server.session.NamedBlocks;
import ucm.server.session.RegionBlocks;
import ucm.server.session.SchedulerSession;

/**
 * A client: reads its frames one after the other in a thread of its own, and answers. Answers of
 * look-ups and copies come from other threads.
 */
final class Connection implements Runnable, AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Connection.class);

  private final UcmServer server;
  private final SocketChannel channel;
  private int role = -1;
  private int processId;
  private String client = "a client";
  private IdentityMessage identity = IdentityMessage.NONE;
  private StageMessage stage = StageMessage.ONLY;
  private GroupsMessage groups = GroupsMessage.NONE;
  private @Nullable EngineSession engine;
  private @Nullable SchedulerSession scheduler;
  private @Nullable WorkerCopies copies;
  private @Nullable NamedBlocks named;
  private @Nullable RegionBlocks region;
  private int rank = -1;
  private volatile int stopSequence;

  Connection(UcmServer server, SocketChannel channel) {
    this.server = server;
    this.channel = channel;
  }

  @Override
  public void run() {
    try {
      serve();
    } catch (IOException e) {
      LOG.debug("{} is gone: {}", client, e.toString());
    } catch (RuntimeException e) {
      LOG.error("{} is dropped because of a mistake in the daemon", client, e);
    } finally {
      if (copies != null) {
        // The end of the connection tells the worker that its memory is left alone.
        copies.close();
      }
      if (region != null) {
        region.close();
      }
      if (named != null) {
        named.close();
      }
      hangUp();
      leave();
      server.ended(this);
    }
  }

  private void serve() throws IOException {
    while (true) {
      int sequence = 0;
      try {
        Frame frame = Frame.read(channel);
        if (frame == null) {
          return;
        }
        sequence = frame.sequence();
        handle(frame.type(), sequence, new FrameReader(frame.body()));
      } catch (ProtocolException e) {
        LOG.warn("{}: {}", client, e.getMessage());
        send(
            new FrameWriter(MessageType.REFUSED, sequence)
                .u16(e.code())
                .string(String.valueOf(e.getMessage())));
        if (!e.isHarmless()) {
          return;
        }
      }
    }
  }

  private void handle(int type, int sequence, FrameReader body)
      throws IOException, ProtocolException {
    if (type == MessageType.HELLO) {
      hello(sequence, HelloMessage.read(body));
      return;
    }
    if (role < 0) {
      throw new ProtocolException(ProtocolException.NOT_ADMITTED, "the first message is HELLO");
    }
    switch (type) {
      case MessageType.IDENTIFY -> {
        requireNoEngine("IDENTIFY");
        identity = body.record(IdentityMessage.class);
      }
      case MessageType.STATUS ->
          send(
              new FrameWriter(MessageType.STATUS_TEXT, sequence)
                  .string(
                      JsonMapper.shared().writeValueAsString(server.administration().status())));
      case MessageType.PING -> send(new FrameWriter(MessageType.DONE, sequence));
      case MessageType.CONFIGURATION -> {
        UcmConfig asked = Engines.config(body.string(), body.string());
        int settings = EngineSettings.bits(asked.settings());
        send(new FrameWriter(MessageType.SETTINGS, sequence).u8(settings));
      }
      default -> {
        switch (role) {
          case HelloMessage.SCHEDULER -> handleScheduler(type, sequence, body);
          case HelloMessage.WORKER -> handleWorker(type, sequence, body);
          default -> handleOperator(type, sequence, body);
        }
      }
    }
  }

  private void handleOperator(int type, int sequence, FrameReader body)
      throws IOException, ProtocolException {
    if (type == MessageType.STOP) {
      LOG.info("{} ends the daemon", client);
      stopSequence = sequence;
      server.stop(this);
    } else if (!new OperatorRequests(server.administration(), this::send)
        .handle(type, sequence, body)) {
      throw unknown(type);
    }
  }

  /** The daemon has ended, as this client asked it to. */
  void stopped() {
    answer(new FrameWriter(MessageType.DONE, stopSequence));
    hangUp();
  }

  private void hello(int sequence, HelloMessage hello) throws IOException, ProtocolException {
    if (!MessageDigest.isEqual(hello.token(), server.token()) || !isOwnUser()) {
      throw new ProtocolException(
          ProtocolException.NOT_ADMITTED,
          "not admitted: the client must run as the daemon's user and send the token that lies"
              + " beside the socket");
    }
    int version = HelloMessage.VERSION;
    if (hello.lowest() > version || hello.highest() < version) {
      throw new ProtocolException(
          ProtocolException.NO_COMMON_VERSION,
          ("the daemon speaks version %s of the protocol, the client %s to %s: update the older"
                  + " one")
              .formatted(version, hello.lowest(), hello.highest()));
    }
    if (role >= 0 || hello.role() > HelloMessage.OBSERVER) {
      throw ProtocolException.bad("HELLO comes once, with role 0, 1 or 2");
    }
    role = hello.role();
    processId = hello.processId();
    String side = List.of("scheduler", "worker", "observer").get(role);
    client = side + " " + hello.processId() + " (" + hello.client() + ")";
    send(
        new FrameWriter(MessageType.WELCOME, sequence)
            .u16(version)
            .string(Daemon.version())
            .bytes(server.bootId()));
  }

  private boolean isOwnUser() throws IOException {
    Principal peer = channel.getOption(ExtendedSocketOptions.SO_PEERCRED).user();
    return peer.getName().equals(Files.getOwner(Path.of("/proc/self")).getName());
  }

  private void handleScheduler(int type, int sequence, FrameReader body)
      throws IOException, ProtocolException {
    switch (type) {
      case MessageType.OPEN_SCHEDULER -> {
        EngineSession opened = openEngine(body);
        scheduler = opened.openScheduler();
        send(new FrameWriter(MessageType.OPENED_SCHEDULER, sequence).u8(opened.settings()));
        LookupMessage.rehearse();
      }
      case MessageType.LOOKUP ->
          scheduler()
              .lookup(body.record(LookupMessage.class), answers(MessageType.FOUND, sequence));
      case MessageType.PLAN -> {
        PlannedMessage planned = scheduler().plan(body.record(PlanMessage.class));
        if (sequence != 0) {
          send(new FrameWriter(MessageType.PLANNED, sequence).record(planned));
        }
      }
      case MessageType.ERRORS_SEEN -> scheduler().errorsSeen();
      case MessageType.RESET -> reset(sequence, body);
      default -> throw unknown(type);
    }
  }

  private void reset(int sequence, FrameReader body) throws IOException, ProtocolException {
    engine().reset(body.hasMore() ? body.string() : UUID.randomUUID().toString());
    send(new FrameWriter(MessageType.DONE, sequence));
  }

  private EngineSession openEngine(FrameReader body) throws ProtocolException {
    if (engine != null) {
      throw ProtocolException.bad("a connection opens one engine");
    }
    EngineSession opened = server.engines().open(EngineFields.read(body), identity.launch());
    engine = opened;
    if (!identity.generation().isEmpty()) {
      opened.useGeneration(identity.generation());
    }
    return opened;
  }

  /** Answers who wants to know. */
  private void done(int sequence) throws IOException {
    if (sequence != 0) {
      send(new FrameWriter(MessageType.DONE, sequence));
    }
  }

  private void requireNoEngine(String message) throws ProtocolException {
    if (engine != null) {
      throw ProtocolException.bad(message + " comes before the engine is opened");
    }
  }

  private static <T> T opened(@Nullable T part, String otherwise) throws ProtocolException {
    if (part == null) {
      throw ProtocolException.bad(otherwise);
    }
    return part;
  }

  private EngineSession engine() throws ProtocolException {
    return opened(engine, "the engine is to be opened first");
  }

  private SchedulerSession scheduler() throws ProtocolException {
    return opened(scheduler, "the engine is to be opened first");
  }

  private void handleWorker(int type, int sequence, FrameReader body)
      throws IOException, ProtocolException {
    switch (type) {
      case MessageType.OPEN_WORKER ->
          opened(
              sequence,
              openEngine(body).openWorker(WorkerFields.read(body, stage, groups), identity));
      case MessageType.BORROW ->
          send(
              new FrameWriter(MessageType.LENDING, sequence)
                  .record(
                      engineOfWorker()
                          .lend(rank, body.u8() != 0, body.hasMore() && body.u8() != 0)));
      case MessageType.GROUPS -> {
        requireNoEngine("GROUPS");
        groups = body.record(GroupsMessage.class);
        done(sequence);
      }
      case MessageType.STAGE -> {
        requireNoEngine("STAGE");
        stage = StageMessage.read(body);
        done(sequence);
      }
      case MessageType.OPEN_NAMED ->
          opened(sequence, openEngine(body).openNamed(NamedFields.read(body), identity));
      case MessageType.EXISTS -> named().exists(body.ids(), count -> count(sequence, count));
      case MessageType.LEASE -> named().lease(body.ids(), answers(MessageType.LEASED, sequence));
      case MessageType.RESERVE ->
          named().reserve(body.ids(), answers(MessageType.RESERVED, sequence));
      case MessageType.RESET -> {
        NamedBlocks _ = named();
        reset(sequence, body);
      }
      case MessageType.COMMIT -> named().commit(body.u64(), count -> count(sequence, count));
      case MessageType.FIND ->
          named().find(body.ids(), found -> blocks(MessageType.FOUND_WHICH, sequence, found));
      case MessageType.OPEN_REGION -> openRegion(sequence, body.record(RegionMessage.class));
      case MessageType.STORE_CHUNKS -> {
        ChunksMessage message = body.record(ChunksMessage.class);
        region().store(message, moved -> blocks(MessageType.MOVED, sequence, moved));
      }
      case MessageType.LOAD_CHUNKS -> {
        ChunksMessage message = body.record(ChunksMessage.class);
        region().load(message, moved -> blocks(MessageType.MOVED, sequence, moved));
      }
      case MessageType.COPY -> copy(sequence, CopyMessage.read(body));
      case MessageType.LOADED -> engineOfWorker().loaded(rank, body.longs(), body.longs());
      case MessageType.SAVED -> engineOfWorker().saved(rank, body.longs(), body.longs());
      default -> throw unknown(type);
    }
  }

  private void opened(int sequence, EngineSession.OpenedWorker worker) throws IOException {
    rank = worker.rank();
    copies = worker.copies();
    named = worker.named();
    send(new FrameWriter(MessageType.OPENED_WORKER, sequence).record(worker.answer()));
  }

  private NamedBlocks named() throws ProtocolException {
    return opened(named, "the worker is to be opened by OPEN_NAMED first");
  }

  private void openRegion(int sequence, RegionMessage message)
      throws IOException, ProtocolException {
    if (named == null || region != null) {
      throw ProtocolException.bad("OPEN_REGION comes once, after OPEN_NAMED");
    }
    String reason = "";
    try {
      region = named.openRegion(message, processId);
    } catch (IOException e) {
      reason = e.toString();
      LOG.warn("{}: the daemon does not move its chunks: {}", client, reason);
    }
    send(new FrameWriter(MessageType.OPENED_REGION, sequence).string(reason));
  }

  private RegionBlocks region() throws ProtocolException {
    return opened(region, "chunks are for workers whose region the daemon has opened");
  }

  private <T extends Record> Consumer<T> answers(int type, int sequence) {
    return body -> answer(new FrameWriter(type, sequence).record(body));
  }

  private void count(int sequence, int count) {
    answer(new FrameWriter(MessageType.COUNT, sequence).u32(count));
  }

  private void blocks(int type, int sequence, BitSet blocks) {
    answer(new FrameWriter(type, sequence).record(BlocksMessage.of(blocks)));
  }

  private EngineSession engineOfWorker() throws ProtocolException {
    if (rank < 0) {
      throw ProtocolException.bad("the worker is to be opened first");
    }
    return engine();
  }

  private void copy(int sequence, CopyMessage message) throws ProtocolException {
    WorkerCopies device =
        opened(copies, "COPY is for workers whose KV cache the daemon has opened");
    try {
      device.copy(
          message, error -> answer(new FrameWriter(MessageType.COPIED, sequence).string(error)));
    } catch (IllegalArgumentException e) {
      throw ProtocolException.bad(String.valueOf(e.getMessage()));
    }
  }

  private static ProtocolException unknown(int type) {
    return new ProtocolException(
        ProtocolException.UNKNOWN_TYPE,
        "messages of type %s are unknown here; the protocol has version %s"
            .formatted(type, HelloMessage.VERSION));
  }

  private void send(FrameWriter frame) throws IOException {
    synchronized (channel) {
      frame.writeTo(channel);
    }
  }

  /** Sends from another thread than that of the connection. */
  private void answer(FrameWriter frame) {
    try {
      send(frame);
    } catch (IOException e) {
      // The thread that reads finds out, too, and gives back what is held.
      LOG.debug("{} is gone: {}", client, e.toString());
    }
  }

  private void leave() {
    EngineSession opened = engine;
    if (opened == null) {
      return;
    }
    try {
      if (scheduler != null) {
        opened.closeScheduler(scheduler);
      } else if (rank >= 0) {
        opened.closeWorker(rank);
      }
    } catch (StoreException e) {
      LOG.warn("{}: {}", client, e.getMessage());
    } finally {
      server.engines().release(opened);
    }
  }

  private void hangUp() {
    try {
      channel.close();
    } catch (IOException e) {
      LOG.debug("{} did not close well: {}", client, e.toString());
    }
  }

  /** Has the connection's thread end it and give back what it held. */
  @Override
  public void close() {
    try {
      channel.shutdownInput();
    } catch (IOException e) {
      LOG.debug("{} is closed already: {}", client, e.toString());
    }
  }
}

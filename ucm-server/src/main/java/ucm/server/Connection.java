package ucm.server;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.Principal;
import java.util.List;
import java.util.UUID;
import jdk.net.ExtendedSocketOptions;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.StoreException;
import ucm.cli.runtime.ProductVersion;
import ucm.server.device.DeviceCopies;
import ucm.server.protocol.CopyMessage;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.Frame;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.LookupMessage;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.PlanMessage;
import ucm.server.protocol.ProtocolException;
import ucm.server.protocol.WorkerFields;
import ucm.server.session.EngineSession;
import ucm.server.session.SchedulerSession;
import ucm.server.staging.StagingSegment;

/**
 * A client: reads its frames one after the other in a thread of its own, and answers. Answers of
 * look-ups come from other threads.
 */
final class Connection implements Runnable, AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Connection.class);
  private static final int MAGIC = 0x314D4355;
  private static final int VERSION = 1;
  private static final int SCHEDULER = 0;
  private static final int WORKER = 1;
  private static final int SAVES_GENERATED = 1;
  private static final int[] NO_SLOTS = {};

  private final UcmServer server;
  private final SocketChannel channel;
  private int role = -1;
  private String client = "a client";
  private @Nullable EngineSession engine;
  private @Nullable SchedulerSession scheduler;
  private @Nullable DeviceCopies copies;
  private int rank = -1;

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
        handle(frame);
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

  private void handle(Frame frame) throws IOException, ProtocolException {
    FrameReader body = new FrameReader(frame.body());
    if (frame.type() == MessageType.HELLO) {
      hello(frame.sequence(), body);
      return;
    }
    if (role < 0) {
      throw new ProtocolException(ProtocolException.NOT_ADMITTED, "the first message is HELLO");
    }
    switch (frame.type()) {
      case MessageType.STATUS ->
          send(
              new FrameWriter(MessageType.STATUS_TEXT, frame.sequence())
                  .string(JsonMapper.shared().writeValueAsString(server.status())));
      case MessageType.PING -> send(new FrameWriter(MessageType.DONE, frame.sequence()));
      default -> {
        if (role == SCHEDULER) {
          handleScheduler(frame, body);
        } else if (role == WORKER) {
          handleWorker(frame, body);
        } else {
          throw unknown(frame);
        }
      }
    }
  }

  private void hello(int sequence, FrameReader body) throws IOException, ProtocolException {
    int magic = body.handle();
    int lowest = body.u16();
    int highest = body.u16();
    byte[] token = body.bytes();
    int asked = body.u8();
    int pid = body.handle();
    String name = body.string();
    if (magic != MAGIC || !MessageDigest.isEqual(token, server.token()) || !isOwnUser()) {
      throw new ProtocolException(
          ProtocolException.NOT_ADMITTED,
          "not admitted: the client must run as the daemon's user and send the token that lies"
              + " beside the socket");
    }
    if (lowest > VERSION || highest < VERSION) {
      throw new ProtocolException(
          ProtocolException.NO_COMMON_VERSION,
          "the daemon speaks version "
              + VERSION
              + " of the protocol, the client "
              + lowest
              + " to "
              + highest
              + ": update the older one");
    }
    if (role >= 0 || asked > WORKER + 1) {
      throw bad("HELLO comes once, with role 0, 1 or 2");
    }
    role = asked;
    client = List.of("scheduler", "worker", "observer").get(asked) + " " + pid + " (" + name + ")";
    send(
        new FrameWriter(MessageType.WELCOME, sequence)
            .u16(VERSION)
            .string(ProductVersion.text())
            .bytes(server.bootId()));
  }

  private boolean isOwnUser() throws IOException {
    Principal peer = channel.getOption(ExtendedSocketOptions.SO_PEERCRED).user();
    return peer.getName().equals(Files.getOwner(Path.of("/proc/self")).getName());
  }

  private void handleScheduler(Frame frame, FrameReader body)
      throws IOException, ProtocolException {
    switch (frame.type()) {
      case MessageType.OPEN_SCHEDULER -> {
        int flags = openEngine(body).savesGenerated() ? SAVES_GENERATED : 0;
        send(new FrameWriter(MessageType.OPENED_SCHEDULER, frame.sequence()).u8(flags));
      }
      case MessageType.LOOKUP -> lookup(frame.sequence(), LookupMessage.read(body));
      case MessageType.PLAN -> plan(frame.sequence(), PlanMessage.read(body));
      case MessageType.ERRORS_SEEN -> {
        if (scheduler != null) {
          scheduler.errorsSeen();
        }
      }
      case MessageType.RESET -> {
        engine().reset(UUID.randomUUID().toString());
        send(new FrameWriter(MessageType.DONE, frame.sequence()));
      }
      default -> throw unknown(frame);
    }
  }

  private EngineSession openEngine(FrameReader body) throws ProtocolException {
    if (engine != null) {
      throw bad("a connection opens one engine");
    }
    EngineSession opened = server.engines().open(EngineFields.read(body));
    engine = opened;
    return opened;
  }

  private EngineSession engine() throws ProtocolException {
    if (engine == null) {
      throw bad("the engine is to be opened first");
    }
    return engine;
  }

  /** Null as long as not all ranks are connected. */
  private @Nullable SchedulerSession scheduler(EngineSession of) {
    if (scheduler == null) {
      scheduler = of.openScheduler();
    }
    return of.isReady() ? scheduler : null;
  }

  private void lookup(int sequence, LookupMessage message) throws ProtocolException {
    EngineSession of = engine();
    SchedulerSession session = scheduler(of);
    if (session == null) {
      found(
          sequence,
          message.handle(),
          new SchedulerSession.Found(0, 0, of.generation(), NO_SLOTS, 0, 0));
    } else {
      session.lookup(message, found -> found(sequence, message.handle(), found));
    }
  }

  private void found(int sequence, int handle, SchedulerSession.Found found) {
    FrameWriter frame =
        new FrameWriter(MessageType.FOUND, sequence)
            .u32(handle)
            .u32(found.tokens())
            .u64(found.hold())
            .u32(found.generation())
            .ints(found.slots())
            .u32(found.promptBlocks())
            .u32(found.foundBlocks());
    try {
      send(frame);
    } catch (IOException e) {
      // The thread that reads finds out, too, and gives back what is held.
      LOG.debug("{} is gone: {}", client, e.toString());
    }
  }

  private void plan(int sequence, PlanMessage message) throws IOException, ProtocolException {
    EngineSession of = engine();
    SchedulerSession session = scheduler(of);
    List<SchedulerSession.PlannedSave> saves = session == null ? List.of() : session.plan(message);
    if (sequence == 0) {
      return;
    }
    FrameWriter frame =
        new FrameWriter(MessageType.PLANNED, sequence).u32(of.generation()).u32(saves.size());
    for (SchedulerSession.PlannedSave save : saves) {
      frame.u32(save.handle()).u64(save.save()).u32(save.firstBlock()).ints(save.slots());
    }
    send(frame);
  }

  private void handleWorker(Frame frame, FrameReader body) throws IOException, ProtocolException {
    switch (frame.type()) {
      case MessageType.OPEN_WORKER -> openWorker(frame.sequence(), body);
      case MessageType.COPY -> copy(frame.sequence(), CopyMessage.read(body));
      case MessageType.LOADED -> engineOfWorker().loaded(rank, body.longs(), body.longs());
      case MessageType.SAVED -> engineOfWorker().saved(rank, body.longs(), body.longs());
      default -> throw unknown(frame);
    }
  }

  private EngineSession engineOfWorker() throws ProtocolException {
    if (rank < 0) {
      throw bad("the worker is to be opened first");
    }
    return engine();
  }

  private void openWorker(int sequence, FrameReader body) throws IOException, ProtocolException {
    EngineSession opened = openEngine(body);
    WorkerFields fields = WorkerFields.read(body);
    EngineSession.OpenedWorker worker = opened.openWorker(fields);
    rank = fields.rank();
    copies = worker.copies();
    StagingSegment segment = worker.segment();
    send(
        new FrameWriter(MessageType.OPENED_WORKER, sequence)
            .u32(opened.generation())
            .string(segment.path().toString())
            .u64(segment.byteSize())
            .u64(segment.inode())
            .u32(segment.slots())
            .u64(segment.stride())
            .u8(copies == null ? 0 : 1)
            .string(worker.hostReason()));
  }

  private void copy(int sequence, CopyMessage message) throws ProtocolException {
    if (copies == null) {
      throw bad("COPY is for workers whose KV cache the daemon has opened");
    }
    try {
      copies.copy(message, error -> copied(sequence, error));
    } catch (IllegalArgumentException e) {
      throw bad(String.valueOf(e.getMessage()));
    }
  }

  private void copied(int sequence, String error) {
    try {
      send(new FrameWriter(MessageType.COPIED, sequence).string(error));
    } catch (IOException e) {
      LOG.debug("{} is gone: {}", client, e.toString());
    }
  }

  private static ProtocolException bad(String message) {
    return new ProtocolException(ProtocolException.BAD_MESSAGE, message);
  }

  private static ProtocolException unknown(Frame frame) {
    return new ProtocolException(
        ProtocolException.UNKNOWN_TYPE,
        "messages of type "
            + frame.type()
            + " are unknown here; the protocol has version "
            + VERSION);
  }

  private void send(FrameWriter frame) throws IOException {
    ByteBuffer bytes = frame.end();
    synchronized (channel) {
      while (bytes.hasRemaining()) {
        channel.write(bytes);
      }
    }
  }

  private void leave() {
    EngineSession opened = engine;
    if (opened == null) {
      return;
    }
    try {
      if (role == SCHEDULER) {
        if (scheduler != null) {
          opened.closeScheduler(scheduler);
        }
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

package ucm.server;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.server.protocol.Frame;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.GroupsMessage;
import ucm.server.protocol.IdentityMessage;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.ProtocolException;
import ucm.server.protocol.StageMessage;
import ucm.server.protocol.WorkerFields;

/** A client as an engine has them, frame by frame. */
final class TestClient implements AutoCloseable {

  static final int SCHEDULER = 0;
  static final int WORKER = 1;
  static final int BLOCK_TOKENS = 16;

  private static final int MAGIC = 0x314D4355;

  /** What FOUND says. */
  record Found(int tokens, long hold, List<Integer> slots, int blocks) {}

  /** What PLANNED says of a request. */
  record Planned(long save, int firstBlock, List<Integer> slots) {}

  private final SocketChannel channel;
  private int sequence;
  private @Nullable MemorySegment slots;
  private long stride;
  private long marksAt;
  private int count;
  private @Nullable MemorySegment lent;
  private long lentStride;
  private long placesAt;

  TestClient(Path socket) throws IOException {
    channel = SocketChannel.open(UnixDomainSocketAddress.of(socket));
  }

  /** A client that has been admitted. */
  static TestClient admitted(Path socket, int role) throws Exception {
    TestClient client = new TestClient(socket);
    Frame _ =
        client.ask(
            client.hello(1, 1, Files.readAllBytes(Daemon.tokenPath(socket)), role),
            MessageType.WELCOME);
    return client;
  }

  FrameWriter hello(int lowest, int highest, byte[] token, int role) {
    return begin(MessageType.HELLO)
        .u32(MAGIC)
        .u16(lowest)
        .u16(highest)
        .bytes(token)
        .u8(role)
        .u32((int) ProcessHandle.current().pid())
        .string("test");
  }

  FrameWriter begin(int type) {
    return new FrameWriter(type, ++sequence);
  }

  void send(FrameWriter frame) throws IOException {
    send(frame.end());
  }

  void send(ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }

  @Nullable Frame receive() throws IOException, ProtocolException {
    return Frame.read(channel);
  }

  Frame ask(FrameWriter question, int expected) throws Exception {
    send(question);
    return answer(expected);
  }

  /**
   * Waits for an answer of a type. What needs no answer and is refused is told by this alone: the daemon
   * closes the connection then, and to send more may fail first.
   *
   * @throws IllegalStateException with what the daemon says when it refuses instead
   */
  Frame answer(int expected) throws Exception {
    Frame answer = receive();
    if (answer == null) {
      throw new IllegalStateException("the daemon closed the connection");
    }
    if (answer.type() != expected) {
      FrameReader body = new FrameReader(answer.body());
      throw new IllegalStateException(
          answer.type() == MessageType.REFUSED
              ? "refused " + body.u16() + ": " + body.string()
              : "type " + answer.type());
    }
    return answer;
  }

  private static FrameWriter engine(
      FrameWriter frame, String id, int tpSize, boolean mla, String yaml) {
    return frame
        .string(id)
        .u32(0)
        .string("model")
        .string("torch.bfloat16")
        .u32(tpSize)
        .u8(mla ? 1 : 0)
        .u32(BLOCK_TOKENS)
        .u8(3)
        .string("ucm.yaml")
        .string(yaml);
  }

  void identify(IdentityMessage identity) throws IOException {
    send(new FrameWriter(MessageType.IDENTIFY, 0).record(identity));
  }

  void openScheduler(String id, int tpSize, boolean mla, String yaml) throws Exception {
    Frame _ =
        ask(
            engine(begin(MessageType.OPEN_SCHEDULER), id, tpSize, mla, yaml),
            MessageType.OPENED_SCHEDULER);
  }

  /** Registers a worker of two layers, K and V of some bytes each, and maps its slots. */
  void openWorker(String id, int tpSize, boolean mla, String yaml, int rank, long bytes)
      throws Exception {
    openWorker(id, tpSize, mla, yaml, rank, KvLayout.uniform(2, bytes, bytes));
  }

  void openWorker(String id, int tpSize, boolean mla, String yaml, int rank, KvLayout layout)
      throws Exception {
    FrameWriter open = engine(begin(MessageType.OPEN_WORKER), id, tpSize, mla, yaml);
    var _ =
        new WorkerFields(rank, layout, "", StageMessage.ONLY, GroupsMessage.NONE, null).write(open);
    opened(ask(open, MessageType.OPENED_WORKER));
  }

  /** Registers a worker that names its blocks by itself, and maps its slots; returns how many. */
  int openNamed(String id, int tpSize, String yaml, long bytes, int mostSlots) throws Exception {
    FrameWriter open =
        engine(begin(MessageType.OPEN_NAMED), id, tpSize, false, yaml).u64(bytes).u32(mostSlots);
    return opened(ask(open, MessageType.OPENED_WORKER));
  }

  private int opened(Frame frame) throws Exception {
    FrameReader answer = new FrameReader(frame.body());
    var _ = answer.handle();
    Path segment = Path.of(answer.string());
    long size = answer.u64();
    var _ = answer.u64();
    count = answer.u32();
    stride = answer.u64();
    marksAt = count * stride;
    try (FileChannel file =
        FileChannel.open(segment, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      slots = file.map(FileChannel.MapMode.READ_WRITE, 0, size, Arena.ofAuto());
    }
    return count;
  }

  MemorySegment slot(int slot, long bytes) {
    return slots().asSlice(slot * stride, bytes);
  }

  /** The number of the slot in which a block lies that was promised in a slot. */
  int place(int slot) {
    int place = placesAt == 0 ? 0 : slots().get(ValueLayout.JAVA_INT, placesAt + 4L * slot);
    return place == 0 ? slot : place;
  }

  /** Whether the daemon has lent a slot. */
  boolean isLent(int slot) {
    return place(slot) >= count;
  }

  /** What was promised in a slot. */
  MemorySegment promised(int slot, long bytes) {
    MemorySegment all = lent;
    return all == null || !isLent(slot)
        ? slot(place(slot), bytes)
        : all.asSlice((place(slot) - count) * lentStride, bytes);
  }

  /**
   * Maps what the daemon lends, if it does, and says so.
   *
   * @param readsPlaces whether it says that it reads places in the segment
   */
  boolean borrow(boolean readsPlaces) throws Exception {
    FrameReader lending = lending(0, readsPlaces);
    int descriptor = lending.u32();
    long size = lending.u64();
    if (lending.u32() == 0) {
      return false;
    }
    lentStride = lending.u64();
    long inode = lending.u64();
    var _ = lending.u64();
    placesAt = lending.u64();
    FrameReader status =
        new FrameReader(ask(begin(MessageType.STATUS), MessageType.STATUS_TEXT).body());
    long pid = JsonMapper.shared().readTree(status.string()).get("pid").asLong();
    Path memory = Path.of("/proc/" + pid + "/fd/" + descriptor);
    if ((Long) Files.getAttribute(memory, "unix:ino") != inode) {
      throw new IOException(memory + " is not what is lent");
    }
    try (FileChannel file = FileChannel.open(memory, StandardOpenOption.READ)) {
      lent = file.map(FileChannel.MapMode.READ_ONLY, 0, size, Arena.ofAuto());
    }
    return lending(1, readsPlaces).u32() > 0;
  }

  private FrameReader lending(int isMapped, boolean readsPlaces) throws Exception {
    FrameWriter borrow = begin(MessageType.BORROW).u8(isMapped);
    return new FrameReader(ask(readsPlaces ? borrow.u8(1) : borrow, MessageType.LENDING).body());
  }

  /** Says whether it may be writing to a slot. */
  void mark(int slot, boolean isFilling) {
    slots().set(ValueLayout.JAVA_BYTE, marksAt + slot, (byte) (isFilling ? 1 : 0));
  }

  private MemorySegment slots() {
    MemorySegment all = slots;
    if (all == null) {
      throw new IllegalStateException("open the worker first");
    }
    return all;
  }

  Found lookup(int handle, int computed, int... tokens) throws Exception {
    beginLookup(handle, computed, tokens);
    return found();
  }

  void beginLookup(int handle, int computed, int... tokens) throws IOException {
    send(
        begin(MessageType.LOOKUP)
            .u32(handle)
            .string("request-" + handle)
            .u32(computed)
            .u32(tokens.length)
            .u32(10)
            .u32(0)
            .u32(0)
            .ints(tokens));
  }

  /** The answer to a look-up that has begun. */
  Found found() throws Exception {
    FrameReader body = new FrameReader(answer(MessageType.FOUND).body());
    var _ = body.handle();
    int found = body.u32();
    long hold = body.u64();
    var _ = body.handle();
    return new Found(found, hold, list(body.ints()), body.u32());
  }

  /** A step that takes a hold, or none for 0, and computes tokens of a request. */
  List<Planned> plan(long hold, int blocks, int handle, int computed, int added) throws Exception {
    FrameWriter plan = begin(MessageType.PLAN).u32(1);
    if (hold == 0) {
      plan.u32(0);
    } else {
      plan.u32(1).u64(hold).u32(blocks);
    }
    plan.u32(0).u32(1).u32(handle).u32(computed).u32(added);
    FrameReader body = new FrameReader(ask(plan, MessageType.PLANNED).body());
    var _ = body.handle();
    int count = body.u32();
    List<Planned> planned = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      var _ = body.handle();
      planned.add(new Planned(body.u64(), body.u32(), list(body.ints())));
    }
    return planned;
  }

  void forget(int handle) throws IOException {
    send(new FrameWriter(MessageType.PLAN, 0).u32(1).u32(0).ints(new int[] {handle}).u32(0));
  }

  /** LOADED or SAVED. */
  void report(int type, long[] well, long[] not) throws IOException {
    send(new FrameWriter(type, 0).longs(well).longs(not));
  }

  /** Waits until the daemon has handled what this client sent. */
  void ping() throws Exception {
    Frame _ = ask(begin(MessageType.PING), MessageType.DONE);
  }

  private static List<Integer> list(int[] values) {
    return Arrays.stream(values).boxed().toList();
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}

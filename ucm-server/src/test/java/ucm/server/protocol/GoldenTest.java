package ucm.server.protocol;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.KvGroups;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.hash.PromptVariant;
import ucm.server.protocol.DeviceFields.CopyMessage;
import ucm.server.protocol.LookupMessage.FoundMessage;
import ucm.server.protocol.LookupMessage.PlacedInput;
import ucm.server.protocol.NamedFields.BlocksMessage;
import ucm.server.protocol.NamedFields.ChunksMessage;
import ucm.server.protocol.NamedFields.LeasedMessage;
import ucm.server.protocol.NamedFields.RegionMessage;
import ucm.server.protocol.NamedFields.ReservedMessage;
import ucm.server.protocol.PlanMessage.PlannedMessage;
import ucm.server.protocol.WorkerFields.LendingMessage;
import ucm.server.protocol.WorkerFields.OpenedWorkerMessage;

/** Frames byte by byte: the tests of the Python package read and write the same files. */
final class GoldenTest {

  private static final Path FOLDER = Path.of("src/test/resources/golden");

  private static byte[] golden(String name) throws IOException {
    try (Stream<String> lines = Files.lines(FOLDER.resolve(name + ".hex"))) {
      return HexFormat.of()
          .parseHex(
              lines.map(line -> line.replaceAll("#.*|\\s", "")).collect(Collectors.joining()));
    }
  }

  private static Frame read(String name) throws Exception {
    Frame frame = Frame.read(Channels.newChannel(new ByteArrayInputStream(golden(name))));
    assertThat(frame).isNotNull();
    return frame;
  }

  private static void written(String name, FrameWriter frame) throws IOException {
    ByteBuffer bytes = frame.end();
    byte[] made = new byte[bytes.remaining()];
    bytes.get(made);
    assertThat(HexFormat.of().formatHex(made)).isEqualTo(HexFormat.of().formatHex(golden(name)));
  }

  @Test
  void whatOperatorsAskAndAreTold() throws Exception {
    FrameReader reload = new FrameReader(read("reload").body());
    assertThat(reload.string()).isEqualTo("/etc/ucm.yaml");
    assertThat(reload.string()).isEqualTo("hit_ratio: 0.5\n");
    FrameReader drain = new FrameReader(read("drain").body());
    assertThat(drain.u8()).isEqualTo(1);
    assertThat(drain.u32()).isEqualTo(120);
    assertThat(new FrameReader(read("log_level").body()).string()).isEqualTo("debug");
    written("progress", new FrameWriter(69, 16).string("clear").u64(1024).u64(0));
    written("report", new FrameWriter(70, 17).string("{\"log_level\":\"debug\"}"));
  }

  @Test
  void aWorker() throws Exception {
    FrameReader body = new FrameReader(read("open_worker_device").body());
    EngineFields engine = EngineFields.read(body);
    assertThat(engine)
        .isEqualTo(
            new EngineFields(
                "engine-1",
                2,
                "Qwen/QwQ-32B",
                "torch.bfloat16",
                4,
                false,
                128,
                3,
                "ucm.yaml",
                "use_lite: no\n"));
    WorkerFields worker = WorkerFields.read(body, StageMessage.ONLY, GroupsMessage.NONE);
    assertThat(worker.rank()).isEqualTo(3);
    assertThat(worker.layoutText()).isEqualTo("4d/0x1(1:16)");
    assertThat(worker.layout().layers()).isEqualTo(2);
    assertThat(worker.layout().tensorBytes(1, 0)).isEqualTo(147_456);
    DeviceFields device = worker.device();
    assertThat(device).isNotNull();
    assertThat(device.uuid()).isEqualTo("000102030405060708090a0b0c0d0e0f");
    assertThat(device.allocations()).hasSize(2);
    assertThat(device.allocations().getFirst().handle()).hasSize(64).endsWith(62, 63);
    assertThat(device.allocations().getFirst().bytes()).isEqualTo(1L << 33);
    assertThat(device.blocks()).isEqualTo(2048);
    assertThat(device.layers())
        .containsExactly(
            List.of(
                new DeviceFields.Tensor(0, 0, 262_144),
                new DeviceFields.Tensor(0, 1 << 29, 262_144)),
            List.of(new DeviceFields.Tensor(1, 512, 1 << 18)));
    assertThat(device.probe().allocation()).isEqualTo(1);
    assertThat(device.probe().offset()).isEqualTo(4096);
    assertThat(device.probe().written()).containsExactly(0, 0xFF);
    FrameReader onHost = new FrameReader(read("open_worker").body());
    EngineFields.read(onHost);
    assertThat(WorkerFields.read(onHost, StageMessage.ONLY, GroupsMessage.NONE).device()).isNull();
  }

  @Test
  void aLookUpOfAClientThatDoesNotSayWhereAnImageIs() throws Exception {
    LookupMessage old =
        new LookupMessage(1, "a", 0, 0, 0, List.of("mm:b"), 0, new int[0], List.of());
    assertThat(old.variant().inputs())
        .containsExactly(new PromptVariant.Input("b", 0, Integer.MAX_VALUE));
    LookupMessage bad =
        new LookupMessage(
            1, "a", 0, 0, 0, List.of(), 0, new int[0], List.of(new PlacedInput("", 4, 4)));
    assertThatThrownBy(bad::variant).hasMessageContaining("found '' from 4 to 4");
  }

  @Test
  void whatTellsAnEngineFromOthers() throws Exception {
    assertThat(new FrameReader(read("identify").body()).record(IdentityMessage.class))
        .isEqualTo(new IdentityMessage("1a2b3", "config", "weights", "second"));
    assertThat(new FrameReader(read("reset").body()).string()).isEqualTo("second");
  }

  @Test
  void groupsOfAHybridModel() throws Exception {
    GroupsMessage message = new FrameReader(read("groups").body()).record(GroupsMessage.class);
    KvLayout layout = KvLayout.uniform(4, 100);
    KvGroups rules = GroupsMessage.rules(stages(message, 4), 128);
    assertThat(rules.all())
        .containsExactly(
            new KvGroups.Group(KvGroups.Kind.ALL, 0, 128, 200),
            new KvGroups.Group(KvGroups.Kind.LAST, 511, 256, 100),
            new KvGroups.Group(KvGroups.Kind.CHUNK, 8192, 128, 100));
    assertThat(message.slot(layout)).isEqualTo(KvLayout.uniform(2, 100));
    assertThat(message.groupOf(layout)).containsExactly(0, 1, 0, 2);
    assertThatThrownBy(() -> GroupsMessage.rules(stages(message, 5), 128))
        .hasMessageContaining("each of the 5 layers is in a group; found 4 of them");
    assertThatThrownBy(() -> GroupsMessage.rules(stages(message, 3), 128))
        .hasMessageContaining("each of the 3 layers");
    assertThatThrownBy(() -> GroupsMessage.rules(stages(message, 4), 100))
        .hasMessageContaining("more blocks of 100");
    assertThat(GroupsMessage.NONE.slot(layout)).isEqualTo(layout);
  }

  private static List<WorkerFields> stages(GroupsMessage groups, int layers) {
    KvLayout layout = KvLayout.uniform(layers, 100);
    return List.of(new WorkerFields(0, layout, "", StageMessage.ONLY, groups, null));
  }

  @Test
  void stagesOfAPipeline() throws Exception {
    assertThat(StageMessage.read(new FrameReader(read("stage").body())))
        .isEqualTo(new StageMessage(4, 3));
    GroupsMessage message = new FrameReader(read("groups").body()).record(GroupsMessage.class);
    // Bytes of a group are those of all stages.
    List<WorkerFields> two = new ArrayList<>(stages(message, 4));
    two.addAll(stages(message, 4));
    assertThat(GroupsMessage.rules(two, 128).all())
        .extracting(KvGroups.Group::bytes)
        .containsExactly(400L, 200L, 200L);
    two.set(1, stages(GroupsMessage.NONE, 4).getFirst());
    assertThatThrownBy(() -> GroupsMessage.rules(two, 128))
        .hasMessageContaining("all stages have the same groups of layers");
  }

  @Test
  void aCopy() throws Exception {
    CopyMessage message = CopyMessage.read(new FrameReader(read("copy").body()));
    assertThat(message.save()).isTrue();
    assertThat(message.firstLayer()).isEqualTo(62);
    assertThat(message.layers()).isEqualTo(2);
    assertThat(message.slots()).containsExactly(5, 1023);
    assertThat(message.blocks()).containsExactly(17, 1 << 20);
  }

  @Test
  void blocksThatTheWorkerNames() throws Exception {
    FrameReader body = new FrameReader(read("open_named").body());
    assertThat(EngineFields.read(body).tpSize()).isEqualTo(1);
    NamedFields named = NamedFields.read(body);
    assertThat(named.layout()).isEqualTo(KvLayout.uniform(1, 1 << 24));
    assertThat(named.mostSlots()).isEqualTo(128);
    for (String name : List.of("exists", "lease", "reserve", "find")) {
      assertThat(new FrameReader(read(name).body()).ids())
          .isEqualTo(
              BlockIds.ofHex(
                  "000102030405060708090a0b0c0d0e0f", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"));
    }
    assertThat(new FrameReader(read("commit").body()).u64()).isEqualTo((1L << 40) + 2);
    written("count", new FrameWriter(MessageType.COUNT, 9).u32(2));
    LeasedMessage leased = new FrameReader(read("leased").body()).record(LeasedMessage.class);
    assertThat(leased.hold()).isEqualTo((1L << 40) + 1);
    assertThat(leased.found()).isEqualTo(3);
    assertThat(leased.slots()).containsExactly(4, 1023);
    ReservedMessage reserved =
        new FrameReader(read("reserved").body()).record(ReservedMessage.class);
    assertThat(reserved.save()).isEqualTo((1L << 40) + 2);
    assertThat(reserved.slots()).containsExactly(5, ReservedMessage.STORED, PlannedMessage.NO_SLOT);
  }

  @Test
  void chunksOfTheWorkersMemory() throws Exception {
    RegionMessage region = new FrameReader(read("open_region").body()).record(RegionMessage.class);
    assertThat(region).isEqualTo(new RegionMessage(17, 1L << 33, (1L << 40) + 7));
    written("opened_region", new FrameWriter(MessageType.OPENED_REGION, 11).string("no such file"));
    ChunksMessage chunks = new FrameReader(read("store_chunks").body()).record(ChunksMessage.class);
    assertThat(chunks.ids().size()).isEqualTo(2);
    assertThat(chunks.chunks()).containsExactly(5, 1 << 20);
    BlocksMessage found = new FrameReader(read("found_which").body()).record(BlocksMessage.class);
    assertThat(found.blocks().stream()).containsExactly(0, 2, 16);
  }

  @Test
  void whatTheDaemonSends() throws Exception {
    written("copied", new FrameWriter(MessageType.COPIED, 8).string("lost"));
    written(
        "refused",
        new FrameWriter(MessageType.REFUSED, read("refused").sequence())
            .u16(ProtocolException.REFUSED_ENGINE)
            .string("rank 4 of 4"));
  }

  /** What one side reads, the other has written; {@link ucm.server.ServeTest} knows what it means. */
  @Test
  void whatIsReadIsWrittenAgain() throws Exception {
    again("hello", body -> HelloMessage.read(body)::write);
    again("open_scheduler", body -> recorded(EngineFields.class, body));
    again(
        "open_worker",
        body -> {
          EngineFields engine = EngineFields.read(body);
          WorkerFields worker = WorkerFields.read(body, StageMessage.ONLY, GroupsMessage.NONE);
          return to -> worker.write(to.record(engine));
        });
    again("opened_worker", body -> recorded(OpenedWorkerMessage.class, body));
    again("lookup", body -> recorded(LookupMessage.class, body));
    again("found", body -> recorded(FoundMessage.class, body));
    again("plan", body -> recorded(PlanMessage.class, body));
    again("stage", body -> recorded(StageMessage.class, body));
    again("lending", body -> recorded(LendingMessage.class, body));
    again("groups", body -> recorded(GroupsMessage.class, body));
    again("planned", body -> recorded(PlannedMessage.class, body));
    again(
        "open_named",
        body -> {
          EngineFields engine = EngineFields.read(body);
          NamedFields named = NamedFields.read(body);
          return to -> named.write(to.record(engine));
        });
    again(
        "exists",
        body -> {
          BlockIds ids = body.ids();
          return to -> to.ids(ids);
        });
    again("open_region", body -> recorded(RegionMessage.class, body));
    again("store_chunks", body -> recorded(ChunksMessage.class, body));
    again("load_chunks", body -> recorded(ChunksMessage.class, body));
    again("found_which", body -> recorded(BlocksMessage.class, body));
    again("moved", body -> recorded(BlocksMessage.class, body));
    again("leased", body -> recorded(LeasedMessage.class, body));
    again("reserved", body -> recorded(ReservedMessage.class, body));
  }

  private interface Reading {
    UnaryOperator<FrameWriter> read(FrameReader body) throws ProtocolException;
  }

  private static UnaryOperator<FrameWriter> recorded(Class<? extends Record> type, FrameReader body)
      throws ProtocolException {
    Record message = body.record(type);
    return to -> to.record(message);
  }

  private static void again(String name, Reading reading) throws Exception {
    Frame frame = read(name);
    UnaryOperator<FrameWriter> message = reading.read(new FrameReader(frame.body()));
    written(name, message.apply(new FrameWriter(frame.type(), frame.sequence())));
  }

  /** A body that is cut off anywhere is refused, and never read beyond its end. */
  @Test
  void bodiesThatAreCutOff() throws Exception {
    List<String> read = new ArrayList<>();
    byte[] lookup = golden("lookup");
    for (int end = 12; end < lookup.length; end++) {
      ByteBuffer body = ByteBuffer.wrap(lookup, 12, end - 12).slice();
      try {
        new FrameReader(body).record(LookupMessage.class);
        read.add("up to " + end);
      } catch (ProtocolException e) {
        assertThat(e.code()).isEqualTo(ProtocolException.BAD_MESSAGE);
      }
    }
    // Without the inputs it is whole, as older clients send it.
    assertThat(read).containsExactly("up to 83");
  }
}

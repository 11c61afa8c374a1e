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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
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

  @ParameterizedTest
  @CsvSource({
    "hello, 1, 1",
    "open_scheduler, 4, 2",
    "open_worker, 6, 2",
    "open_worker_device, 6, 2",
    "lookup, 8, 3",
    "plan, 10, 4",
    "plan_unanswered, 10, 0",
    "loaded, 12, 0",
    "saved, 13, 0",
    "errors_seen, 14, 0",
    "reset, 15, 5",
    "status, 17, 6",
    "ping, 19, 7",
    "copy, 20, 8",
    "open_named, 22, 2",
    "exists, 23, 9",
    "lease, 25, 10",
    "reserve, 27, 11",
    "commit, 29, 12",
    "configuration, 30, 13",
    "identify, 32, 0",
    "find, 33, 10",
    "open_region, 35, 11",
    "store_chunks, 37, 12",
    "load_chunks, 38, 13",
    "reload, 64, 14",
    "drain, 65, 15",
    "clear, 66, 16",
    "log_level, 67, 17",
    "stop, 68, 18",
    "groups, 40, 8",
    "stage, 41, 7"
  })
  void headersOfAClient(String name, int type, int sequence) throws Exception {
    assertThat(read(name).type()).isEqualTo(type);
    assertThat(read(name).sequence()).isEqualTo(sequence);
  }

  @Test
  void noFileIsLeftOut() throws IOException {
    try (Stream<Path> files = Files.list(FOLDER)) {
      assertThat(files.map(file -> file.getFileName().toString()))
          .hasSize(48)
          .contains("found.hex", "planned.hex", "opened_worker.hex", "copied.hex", "refused.hex");
    }
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
  void aLookUp() throws Exception {
    LookupMessage message = new FrameReader(read("lookup").body()).record(LookupMessage.class);
    assertThat(message.handle()).isEqualTo(7);
    assertThat(message.requestId()).isEqualTo("cmpl-é");
    assertThat(message.computedTokens()).isEqualTo(128);
    assertThat(message.promptTokens()).isEqualTo(300);
    assertThat(message.maxOutputTokens()).isEqualTo(16);
    assertThat(message.variants()).containsExactly("lora:a", "salt:c");
    assertThat(message.inputs()).containsExactly(new LookupMessage.PlacedInput("image", 3, 259));
    assertThat(message.variant())
        .isEqualTo(new PromptVariant("a", List.of(new PromptVariant.Input("image", 3, 259)), "c"));
    assertThat(message.firstIndex()).isEqualTo(2);
    assertThat(message.tokens()).containsExactly(0, 151_643, Integer.MAX_VALUE);
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
  void aPlan() throws Exception {
    PlanMessage message = new FrameReader(read("plan").body()).record(PlanMessage.class);
    assertThat(message.step()).isEqualTo(9);
    assertThat(message.taken())
        .containsExactly(new PlanMessage.Taken((1L << 40) + 1, 2), new PlanMessage.Taken(5, 0));
    assertThat(message.forgotten()).containsExactly(6, 8);
    assertThat(message.scheduled())
        .containsExactly(
            new PlanMessage.Scheduled(7, 128, 172), new PlanMessage.Scheduled(11, 0, 64));
    assertThat(message.generated()).hasSize(1);
    assertThat(message.generated().getFirst().handle()).isEqualTo(7);
    assertThat(message.generated().getFirst().firstIndex()).isEqualTo(299);
    assertThat(message.generated().getFirst().tokens()).containsExactly(151_643);
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
    FoundMessage found = new FrameReader(read("found").body()).record(FoundMessage.class);
    assertThat(found.handle()).isEqualTo(7);
    assertThat(found.tokens()).isEqualTo(255);
    assertThat(found.hold()).isEqualTo((1L << 40) + 1);
    assertThat(found.generation()).isEqualTo(0xFEDCBA98);
    assertThat(found.slots()).containsExactly(4, 1023);
    assertThat(found.promptBlocks()).isEqualTo(3);
    assertThat(found.foundBlocks()).isEqualTo(2);
    assertThat(found.parts())
        .containsExactly(new FoundMessage.Part(0, 1), new FoundMessage.Part(2, 1));
    PlannedMessage planned = new FrameReader(read("planned").body()).record(PlannedMessage.class);
    assertThat(planned.generation()).isEqualTo(0xFEDCBA98);
    assertThat(planned.saves()).hasSize(2);
    assertThat(planned.saves().getFirst().handle()).isEqualTo(7);
    assertThat(planned.saves().getFirst().save()).isEqualTo(1L << 33);
    assertThat(planned.saves().getFirst().firstBlock()).isEqualTo(2);
    assertThat(planned.saves().getFirst().slots()).containsExactly(5, PlannedMessage.NO_SLOT);
    assertThat(planned.saves().getLast().slots()).containsExactly(6);
    assertThat(planned.groups()).containsExactly(0, 1);
    assertThat(new FrameReader(read("opened_worker").body()).record(OpenedWorkerMessage.class))
        .isEqualTo(
            new OpenedWorkerMessage(
                0xFEDCBA98,
                "/dev/shm/ucm-serve-0-0-1",
                (1L << 32) + 4096,
                1L << 40,
                1024,
                1 << 22,
                false,
                "no GPU",
                2));
    written("copied", new FrameWriter(MessageType.COPIED, 8).string("lost"));
    written(
        "refused",
        new FrameWriter(MessageType.REFUSED, read("refused").sequence())
            .u16(ProtocolException.REFUSED_ENGINE)
            .string("rank 4 of 4"));
  }

  /** What one side reads, the other has written. */
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

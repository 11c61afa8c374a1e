package ucm.server;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvCaches;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.KvTensor;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;

/**
 * A rank of an engine that has no model: each word of a block follows from a number that stands for the
 * tokens up to the block's end. A step compares what was loaded, word by word, and fills what is saved.
 */
final class RemoteRank implements AutoCloseable {

  static final int BLOCK_TOKENS = 16;
  static final int BLOCKS = 32;

  private static final int LAYERS = 2;
  private static final long TENSOR = 1024;
  private static final KvLayout LAYOUT = KvLayout.uniform(LAYERS, TENSOR, TENSOR);

  /** Bytes of a block. */
  static final long BYTES = 2 * LAYERS * TENSOR;

  /**
   * What a step found.
   *
   * @param wrong words that are not what they should be, in blocks that are said to be loaded
   * @param errors blocks that could not be loaded
   */
  // These are never compared.
  @SuppressWarnings("ArrayRecordComponent")
  record Step(long wrong, int[] errors) {}

  private final Arena arena = Arena.ofShared();
  private final List<List<MemorySegment>> memory = new ArrayList<>();
  private final int part;
  private final Store slots;
  private final WorkerConnector worker;

  RemoteRank(RemoteSetup setup, int rank, boolean mla) {
    part = mla ? 0 : rank;
    List<List<KvTensor>> layers = new ArrayList<>();
    for (int layer = 0; layer < LAYERS; layer++) {
      List<MemorySegment> tensors =
          List.of(arena.allocate(BLOCKS * TENSOR), arena.allocate(BLOCKS * TENSOR));
      memory.add(tensors);
      layers.add(
          tensors.stream()
              .map(tensor -> KvTensor.dense(MemoryRegion.host(tensor), TENSOR))
              .toList());
    }
    slots = setup.slots(rank);
    worker = setup.worker(rank, new KvCaches(layers), slots);
  }

  static EngineSpec spec(String id, int tpSize, boolean mla) {
    return new EngineSpec(id, "model", "torch.bfloat16", tpSize, mla, BLOCK_TOKENS, LAYOUT);
  }

  /**
   * Does a step.
   *
   * @param numbers for each of the engine's blocks, what stands for its tokens
   */
  Step step(StepPlan plan, long[] numbers) throws InterruptedException {
    // So that a load that copies nothing is seen.
    each(plan, true, (block, layer) -> write(block, layer, ~numbers[block]));
    worker.startLoad(plan);
    for (int i = 0; i < LAYERS; i++) {
      int computed = i;
      worker.waitForLayerLoad(i);
      each(
          plan,
          false,
          (block, layer) -> {
            if (layer == computed) {
              write(block, layer, numbers[block]);
            }
          });
      worker.saveLayer(i);
    }
    worker.waitForSave();
    int[] errors = worker.takeLoadErrors();
    long[] wrong = {0};
    each(
        plan,
        true,
        (block, layer) -> {
          if (Arrays.binarySearch(errors, block) < 0) {
            wrong[0] += wrong(block, layer, numbers[block]);
          }
        });
    return new Step(wrong[0], errors);
  }

  private interface OfBlock {
    void at(int block, int layer);
  }

  private static void each(StepPlan plan, boolean loaded, OfBlock action) {
    for (RequestPlan request : plan.requests()) {
      for (int block : loaded ? request.loadBlocks() : request.saveBlocks()) {
        for (int layer = 0; layer < LAYERS; layer++) {
          action.at(block, layer);
        }
      }
    }
  }

  private void write(int block, int layer, long number) {
    for (int tensor = 0; tensor < 2; tensor++) {
      for (long at = 0; at < TENSOR; at += Long.BYTES) {
        memory
            .get(layer)
            .get(tensor)
            .set(ValueLayout.JAVA_LONG, block * TENSOR + at, word(number, layer, tensor, at));
      }
    }
  }

  private long wrong(int block, int layer, long number) {
    long wrong = 0;
    for (int tensor = 0; tensor < 2; tensor++) {
      for (long at = 0; at < TENSOR; at += Long.BYTES) {
        long found = memory.get(layer).get(tensor).get(ValueLayout.JAVA_LONG, block * TENSOR + at);
        wrong += found == word(number, layer, tensor, at) ? 0 : 1;
      }
    }
    return wrong;
  }

  private long word(long number, int layer, int tensor, long at) {
    return (number * 31 + part) * 0x9E3779B97F4A7C15L + 4 * at + 2L * layer + tensor;
  }

  @Override
  public void close() {
    worker.close();
    slots.close();
    arena.close();
  }

  /** What tells a process of {@link #main} to do a step. */
  static String line(StepPlan plan, long[] numbers) {
    return HexFormat.of().formatHex(PlanBytes.of(plan))
        + " "
        + LongStream.of(numbers).mapToObj(Long::toString).collect(Collectors.joining(","));
  }

  /** What such a process says; null for lines of its log. */
  static Step step(String line) {
    String[] words = line.split(" ", -1);
    int[] errors =
        words[2].isEmpty()
            ? new int[0]
            : Arrays.stream(words[2].split(",", -1)).mapToInt(Integer::parseInt).toArray();
    return new Step(Long.parseLong(words[1]), errors);
  }

  /** A process: socket, configuration, engine, ranks, MLA, rank; then a step a line. */
  public static void main(String[] arguments) throws Exception {
    boolean mla = Boolean.parseBoolean(arguments[4]);
    EngineSpec spec = spec(arguments[2], Integer.parseInt(arguments[3]), mla);
    RemoteSetup setup = RemoteSetup.read(Path.of(arguments[0]), Path.of(arguments[1]), spec);
    try (RemoteRank rank = new RemoteRank(setup, Integer.parseInt(arguments[5]), mla);
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      System.out.println("@ready");
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        String[] words = line.split(" ", -1);
        long[] numbers =
            Arrays.stream(words[1].split(",", -1)).mapToLong(Long::parseLong).toArray();
        Step step = rank.step(PlanBytes.read(HexFormat.of().parseHex(words[0])), numbers);
        String errors =
            Arrays.stream(step.errors()).mapToObj(String::valueOf).collect(Collectors.joining(","));
        System.out.println("@ " + step.wrong() + " " + errors);
      }
    }
  }
}

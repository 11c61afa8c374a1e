package ucm.bench.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.bench.simulator.TestRequests.BLOCK_TOKENS;
import static ucm.bench.simulator.TestRequests.HASHER;
import static ucm.bench.simulator.TestRequests.request;

import java.util.List;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.KvModels;

/** The loop and the clock, without bytes: all times are exact. */
class EngineSimulatorTest {

  private static final long MS = 1_000_000;
  private static final Offset<Double> EXACT = Offset.offset(1e-6);

  private static EnginePlan plan(int blocks, int stepTokens, boolean prefixCache) {
    return new EnginePlan(blocks, BLOCK_TOKENS, stepTokens, 8, prefixCache);
  }

  @Test
  void firstTokenComesWhenThePromptIsComputedAndTheQueueBeforeIt() throws InterruptedException {
    ServeResult result =
        EngineSimulator.computeEverything(
            plan(100, 10, false),
            HASHER,
            ComputeModel.measured(2, 5),
            List.of(request("a", 0, 10, 3), request("b", 100, 10, 1)));
    // Step 1 is a's prompt; in step 2 a generates and b computes nine tokens; then both one more.
    assertThat(result.served()).extracting(ServeResult.Served::id).containsExactly("a", "b");
    assertThat(result.served().get(0).ttftNanos()).isEqualTo(20 * MS);
    assertThat(result.served().get(1).ttftNanos()).isEqualTo((20 + 20 + 5) * MS);
    assertThat(result.served().get(0).totalNanos()).isEqualTo(45 * MS);
    assertThat(result.meanTtftMillis()).isEqualTo(32.5, EXACT);
    assertThat(result.ttftMillis(0.5)).isEqualTo(20, EXACT);
    assertThat(result.ttftMillis(0.99)).isEqualTo(45, EXACT);
    assertThat(result.steps()).isEqualTo(3);
    assertThat(result.mostRequests()).isEqualTo(2);
  }

  @Test
  void waitsForRequestsThatComeLater() throws InterruptedException {
    ServeResult result =
        EngineSimulator.computeEverything(
            plan(100, 100, false),
            HASHER,
            ComputeModel.measured(1, 0),
            List.of(request("late", 0, 10, 1, 500 * MS), request("early", 100, 10, 1, 5 * MS)));
    assertThat(result.served()).extracting(ServeResult.Served::id).containsExactly("early", "late");
    assertThat(result.served()).extracting(ServeResult.Served::ttftNanos).containsOnly(10 * MS);
    assertThat(result.seconds()).isEqualTo(0.510, EXACT);
  }

  @Test
  void prefixCacheOfTheDeviceSparesWhatAnEarlierRequestComputed() throws InterruptedException {
    List<ServeRequest> requests = List.of(request("a", 0, 16, 1), request("b", 0, 18, 1, 100 * MS));
    ServeResult result =
        EngineSimulator.computeEverything(
            plan(100, 100, true), HASHER, ComputeModel.measured(1, 0), requests);
    assertThat(result.served()).extracting(ServeResult.Served::hbmTokens).containsExactly(0, 16);
    assertThat(result.served())
        .extracting(ServeResult.Served::ttftNanos)
        .containsExactly(16 * MS, 2 * MS);
  }

  @Test
  void requestsThatLostTheirMemoryAreServedToTheEnd() throws InterruptedException {
    List<ServeRequest> requests =
        List.of(request("a", 0, 8, 9), request("b", 100, 8, 9), request("c", 200, 8, 9));
    ServeResult result =
        EngineSimulator.computeEverything(
            plan(6, 100, false), HASHER, ComputeModel.measured(1, 1), requests);
    assertThat(result.preemptions()).isPositive();
    assertThat(result.served())
        .extracting(ServeResult.Served::id)
        .containsExactlyInAnyOrder("a", "b", "c");
    assertThat(result.served().stream().mapToInt(ServeResult.Served::preemptions).sum())
        .isEqualTo(result.preemptions());
  }

  @Test
  void operationsOfAModelGrowWithWhatIsAttendedTo() throws InterruptedException {
    KvModel model = KvModels.named("qwq-32b", "").orElseThrow();
    ComputeModel compute = ComputeModel.operations(model, 1e15, "a GPU", 0);
    ServeResult result =
        EngineSimulator.computeEverything(
            plan(3000, 4000, false), HASHER, compute, List.of(request("a", 0, 8000, 1)));
    double whole = model.prefillOperations(0, 8000) / 1e15 * 1e3;
    assertThat(result.meanTtftMillis()).as("in two chunks").isEqualTo(whole, Offset.offset(1e-3));
    assertThat(whole).isGreaterThan(2 * model.prefillOperations(0, 4000) / 1e15 * 1e3);
    assertThat(compute).hasToString("the operations of Qwen/QwQ-32B on a GPU");
  }
}

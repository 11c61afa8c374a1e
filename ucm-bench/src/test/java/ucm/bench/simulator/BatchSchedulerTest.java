package ucm.bench.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.bench.simulator.TestRequests.BLOCK_TOKENS;
import static ucm.bench.simulator.TestRequests.request;

import java.util.BitSet;
import java.util.List;
import org.junit.jupiter.api.Test;

class BatchSchedulerTest {

  private static final BitSet NONE = new BitSet();

  private static BatchScheduler scheduler(int blocks, int stepTokens, int maxRunning) {
    return new BatchScheduler(
        new PagedKvMemory(blocks, BLOCK_TOKENS, false),
        TestRequests.HASHER,
        null,
        stepTokens,
        maxRunning);
  }

  /** What a step computes, for example {@code a 0-8}. */
  private static List<String> shown(Batch batch) {
    return batch.parts().stream()
        .map(part -> part.request().id() + " " + part.from() + "-" + part.to())
        .toList();
  }

  private static List<String> step(BatchScheduler scheduler) {
    Batch batch = scheduler.next();
    scheduler.computed(batch, NONE, 0);
    return shown(batch);
  }

  @Test
  void computesLongPromptsInChunks() {
    BatchScheduler scheduler = scheduler(10, 8, 4);
    scheduler.add(request("a", 0, 20, 1));
    assertThat(step(scheduler)).containsExactly("a 0-8");
    assertThat(step(scheduler)).containsExactly("a 8-16");
    assertThat(step(scheduler)).containsExactly("a 16-20");
    assertThat(scheduler.next().isEmpty()).isTrue();
  }

  @Test
  void generatesForSomeWhileItComputesThePromptsOfOthers() {
    BatchScheduler scheduler = scheduler(20, 8, 4);
    scheduler.add(request("a", 0, 5, 3));
    assertThat(step(scheduler)).containsExactly("a 0-5");
    scheduler.add(request("b", 100, 10, 1));
    assertThat(step(scheduler)).containsExactly("a 5-6", "b 0-7");
    assertThat(step(scheduler)).containsExactly("a 6-7", "b 7-10");
    assertThat(step(scheduler)).isEmpty();
  }

  @Test
  void admitsNoMoreRequestsThanAStepMayHave() {
    BatchScheduler scheduler = scheduler(20, 100, 2);
    for (String id : List.of("a", "b", "c")) {
      scheduler.add(request(id, 0, 3, 1));
    }
    assertThat(step(scheduler)).containsExactly("a 0-3", "b 0-3");
    assertThat(step(scheduler)).containsExactly("c 0-3");
  }

  @Test
  void takesTheMemoryOfTheRequestThatCameLastAndLetsItBeginAgainFirst() {
    BatchScheduler scheduler = scheduler(4, 100, 4);
    scheduler.add(request("a", 0, 8, 3));
    scheduler.add(request("b", 100, 8, 2));
    scheduler.add(request("c", 200, 4, 1));
    assertThat(step(scheduler)).containsExactly("a 0-8", "b 0-8");
    assertThat(step(scheduler)).as("b gives way, and no request comes in").containsExactly("a 8-9");
    assertThat(scheduler.preemptions()).isOne();
    assertThat(step(scheduler)).containsExactly("a 9-10");
    assertThat(step(scheduler))
        .as("b computes its prompt and the token that it had generated")
        .containsExactly("b 0-9", "c 0-4");
    assertThat(scheduler.next().isEmpty()).isTrue();
  }

  @Test
  void computesAgainWhatWasToBeLoadedAndFailed() {
    BatchScheduler scheduler = scheduler(10, 100, 4);
    ServeRequest request = request("a", 0, 13, 1);
    scheduler.add(request);
    Batch batch = scheduler.next();
    // As if the first two blocks had been loaded.
    request.admitted(0, 8);
    Batch loaded =
        new Batch(
            List.of(new Batch.Part(request, 8, 5, 0, 2, batch.parts().getFirst().newBlocks())));
    BitSet failed = new BitSet();
    failed.set(request.table().get(1));
    assertThat(scheduler.computed(loaded, failed, 0)).isEmpty();
    assertThat(scheduler.failedBlocks()).isOne();
    assertThat(step(scheduler)).containsExactly("a 4-13");
  }

  @Test
  void refusesARequestThatNeverFits() {
    BatchScheduler scheduler = scheduler(2, 100, 4);
    assertThatThrownBy(() -> scheduler.add(request("a", 0, 8, 1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("needs 3 blocks, and the KV memory has 2");
  }
}

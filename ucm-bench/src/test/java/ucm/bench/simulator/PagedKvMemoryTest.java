package ucm.bench.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.bench.simulator.TestRequests.BLOCK_TOKENS;

import org.junit.jupiter.api.Test;

class PagedKvMemoryTest {

  @Test
  void givesBlocksOneByOneAndRefusesWhatDoesNotFitAsAWhole() {
    PagedKvMemory memory = new PagedKvMemory(3, BLOCK_TOKENS, false);
    ServeRequest request = TestRequests.hashed("a", 0, 20);
    assertThat(memory.grow(request, 1)).isTrue();
    assertThat(memory.grow(request, 4)).isTrue();
    assertThat(request.table()).hasSize(1);
    assertThat(memory.grow(request, 13)).isFalse();
    assertThat(request.table()).as("nothing has changed").hasSize(1);
    assertThat(memory.grow(request, 12)).isTrue();
    assertThat(request.table(0, 3)).containsExactlyInAnyOrder(0, 1, 2);
    assertThat(memory.free()).isZero();
    memory.release(request);
    assertThat(memory.free()).isEqualTo(3);
  }

  @Test
  void sharesTheBlocksOfACommonPrefixUntilTheLastUserIsGone() {
    PagedKvMemory memory = new PagedKvMemory(4, BLOCK_TOKENS, true);
    ServeRequest first = TestRequests.hashed("a", 0, 9);
    ServeRequest second = TestRequests.hashed("b", 0, 10);
    assertThat(memory.admit(first, 0, 9)).isTrue();
    memory.remember(first, 2);
    assertThat(memory.cachedBlocks(second)).isEqualTo(2);
    assertThat(memory.admit(second, 2, 10)).isTrue();
    assertThat(second.table(0, 2)).isEqualTo(first.table(0, 2));
    memory.release(first);
    assertThat(memory.free()).isOne();
    memory.release(second);
    assertThat(memory.free()).isEqualTo(4);
    assertThat(memory.cachedBlocks(TestRequests.hashed("c", 0, 9))).isEqualTo(2);
  }

  @Test
  void leavesATokenToComputeOfAPromptThatIsInMemory() {
    PagedKvMemory memory = new PagedKvMemory(4, BLOCK_TOKENS, true);
    ServeRequest first = TestRequests.hashed("a", 0, 8);
    memory.admit(first, 0, 8);
    memory.remember(first, 2);
    assertThat(memory.cachedBlocks(TestRequests.hashed("b", 0, 8))).isOne();
  }

  @Test
  void forgetsTheEndOfAPromptBeforeItsBeginning() {
    PagedKvMemory memory = new PagedKvMemory(4, BLOCK_TOKENS, true);
    ServeRequest gone = TestRequests.hashed("a", 0, 13);
    memory.admit(gone, 0, 13);
    memory.remember(gone, 3);
    memory.release(gone);
    ServeRequest other = TestRequests.hashed("b", 1000, 8);
    assertThat(memory.admit(other, 0, 8)).isTrue();
    assertThat(memory.cachedBlocks(TestRequests.hashed("c", 0, 13))).isEqualTo(2);
  }

  @Test
  void admissionThatIsRefusedLeavesWhatWasCached() {
    PagedKvMemory memory = new PagedKvMemory(3, BLOCK_TOKENS, true);
    ServeRequest first = TestRequests.hashed("a", 0, 9);
    memory.admit(first, 0, 9);
    memory.remember(first, 2);
    memory.release(first);
    ServeRequest second = TestRequests.hashed("b", 0, 17);
    assertThat(memory.admit(second, 2, 17)).isFalse();
    assertThat(second.table()).isEmpty();
    assertThat(memory.free()).isEqualTo(3);
    assertThat(memory.cachedBlocks(second)).isEqualTo(2);
  }
}

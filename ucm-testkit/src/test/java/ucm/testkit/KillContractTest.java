package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.Store;
import ucm.testkit.fault.MemoryStore;

/** The stores of other modules pass the contract; this one is caught by it. */
final class KillContractTest {

  @TempDir Path directory;

  /** Run by the test below only. */
  static final class LosesAll extends KillContract {

    @Override
    protected Store newStore() {
      // Durable for as long as its volume lives, which here is as long as the process.
      return new MemoryStore(new MemoryStore.Volume());
    }

    @Override
    protected int kills() {
      return 1;
    }
  }

  @Test
  void catchesAStoreThatCallsDurableWhatDiesWithItsProcess() {
    LosesAll contract = new LosesAll();
    contract.parent = directory;
    assertThatThrownBy(contract::losesNothingDurableAndServesNothingWrongWhenKilled)
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("called durable, is there");
  }

  @Test
  void readsWhatAProcessSaysAndKillsIt() throws Exception {
    try (TestProcess echo = new TestProcess(Echo.class, "hello")) {
      assertThat(echo.line()).isEqualTo("hello");
      echo.tell("you");
      assertThat(echo.line()).isEqualTo("you");
      echo.kill();
      assertThat(echo.line()).isNull();
      assertThat(echo.exitCode()).isEqualTo(137);
    }
  }

  /** Says its argument, then what it is told. */
  static final class Echo {

    private Echo() {}

    public static void main(String[] args) throws Exception {
      System.out.println(args[0]);
      System.in.transferTo(System.out);
    }
  }
}

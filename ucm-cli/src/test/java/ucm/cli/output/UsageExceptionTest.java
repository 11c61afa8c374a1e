package ucm.cli.output;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class UsageExceptionTest {
  @Test
  void refusesWhatIsNoNumber() {
    assertThatThrownBy(() -> UsageException.atLeast("--x", Double.NaN, 1))
        .isInstanceOf(UsageException.class)
        .hasMessage("--x is 1 or more; found NaN");
    assertThatThrownBy(() -> UsageException.within("--x", Double.NaN, 1, 2))
        .isInstanceOf(UsageException.class);
    assertThatCode(() -> UsageException.atLeast("--x", 1, 1)).doesNotThrowAnyException();
    assertThatCode(() -> UsageException.atLeast("--x", null, 1)).doesNotThrowAnyException();
  }
}

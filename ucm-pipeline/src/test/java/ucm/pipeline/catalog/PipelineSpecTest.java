package ucm.pipeline.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class PipelineSpecTest {

  @Test
  void takesAStringApartAtItsBars() {
    assertThat(PipelineSpec.parse("Cache|Posix").stages()).containsExactly("Cache", "Posix");
    assertThat(PipelineSpec.parse("Fake").stages()).containsExactly("Fake");
    assertThat(PipelineSpec.parse("A|b_1|C-d|A").stages()).containsExactly("A", "b_1", "C-d", "A");
  }

  @Test
  void doesNotCareForBlanksAroundNames() {
    assertThat(PipelineSpec.parse("  Cache |\tPosix ")).hasToString("Cache|Posix");
  }

  @Test
  void saysWhereANameIsMissing() {
    assertThatThrownBy(() -> PipelineSpec.parse("Cache||Posix"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "the pipeline \"Cache||Posix\" has no stage name at column 7; join names by '|', as in"
                + " Cache|Posix");
    assertThatThrownBy(() -> PipelineSpec.parse("Cache|")).hasMessageContaining("at column 7");
    assertThatThrownBy(() -> PipelineSpec.parse("")).hasMessageContaining("at column 1");
    assertThatThrownBy(() -> PipelineSpec.parse("|Posix")).hasMessageContaining("at column 1");
  }

  @Test
  void saysWhereANameIsBad() {
    assertThatThrownBy(() -> PipelineSpec.parse("Cache| Po/six"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "the pipeline \"Cache| Po/six\" has \"Po/six\" at column 8, which is no stage name: a"
                + " letter, then up to 63 letters, digits, '_' or '-'");
    assertThatThrownBy(() -> PipelineSpec.parse("Cache>Posix")).hasMessageContaining("column 1");
    assertThatThrownBy(() -> PipelineSpec.parse("9Fake")).hasMessageContaining("column 1");
    assertThatThrownBy(() -> PipelineSpec.parse("A" + "b".repeat(64)))
        .hasMessageContaining("column 1");
  }

  @Test
  void hasAtLeastOneStage() {
    assertThatThrownBy(() -> new PipelineSpec(List.of()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("at least one stage");
  }
}

package ucm.pipeline.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import ucm.api.StoreName;

/**
 * A pipeline string taken apart: the names of its stages.
 *
 * @param stages at least one name, the stage nearest the engine first; a name may stand twice
 */
public record PipelineSpec(List<String> stages) {

  private static final Pattern NAME = Pattern.compile(StoreName.PATTERN);

  public PipelineSpec {
    stages = List.copyOf(stages);
    if (stages.isEmpty()) {
      throw new IllegalArgumentException(
          "a pipeline has at least one stage, for example Cache|Posix");
    }
    for (String stage : stages) {
      requireName(stage, stages.toString(), 1);
    }
  }

  /**
   * Takes a string such as {@code Cache|Posix} apart. Blanks around names do not count.
   *
   * @throws IllegalArgumentException naming the column (from 1) of what is wrong
   */
  public static PipelineSpec parse(String text) {
    List<String> names = new ArrayList<>();
    int start = 0;
    for (String part : text.split("\\|", -1)) {
      String name = part.strip();
      requireName(name, "\"" + text + "\"", 1 + start + part.indexOf(name));
      names.add(name);
      start += part.length() + 1;
    }
    return new PipelineSpec(names);
  }

  private static void requireName(String name, String whole, int column) {
    if (name.isEmpty()) {
      throw new IllegalArgumentException(
          "the pipeline %s has no stage name at column %s; join names by '|', as in Cache|Posix"
              .formatted(whole, column));
    }
    if (!NAME.matcher(name).matches()) {
      throw new IllegalArgumentException(
          "the pipeline %s has \"%s\" at column %s, which is no stage name: a letter, then up to 63"
                  .formatted(whole, name, column)
              + " letters, digits, '_' or '-'");
    }
  }

  /** The pipeline string, without blanks. */
  @Override
  public String toString() {
    return String.join("|", stages);
  }
}

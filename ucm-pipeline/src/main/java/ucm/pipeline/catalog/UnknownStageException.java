package ucm.pipeline.catalog;

import java.util.stream.Collectors;
import ucm.api.StoreException;

/**
 * A stage was asked for that is not there. The message lists what was found, where it was searched,
 * what was not loaded and why, and the nearest name.
 */
public final class UnknownStageException extends StoreException {

  private static final long serialVersionUID = 1L;

  private final String stage;
  private final String nearest;

  public UnknownStageException(String stage, StoreCatalog catalog) {
    super(message(stage, catalog));
    this.stage = stage;
    this.nearest = NearestName.among(catalog.names(), stage);
  }

  public String stage() {
    return stage;
  }

  /** The known name nearest to it, or empty. */
  public String nearest() {
    return nearest;
  }

  /** The first sentence of the message. */
  public String summary() {
    return String.valueOf(getMessage()).lines().findFirst().orElseThrow();
  }

  private static String message(String stage, StoreCatalog catalog) {
    String nearest = NearestName.among(catalog.names(), stage);
    String found = catalog.names().isEmpty() ? "none" : String.join(", ", catalog.names());
    String summary =
        catalog.entries().stream()
            .filter(entry -> entry.name().equals(stage))
            .map(entry -> "was found but cannot be used: " + entry.problems().getFirst())
            .map(problem -> "the stage " + stage + " " + problem)
            .findFirst()
            .orElse(
                "there is no stage %s; %sFound: %s"
                    .formatted(
                        stage, nearest.isEmpty() ? "" : "did you mean " + nearest + "? ", found));
    return summary
        + "\nsearched: "
        + String.join("; ", catalog.searched())
        + catalog.problems().stream()
            .map(problem -> "\nnot loaded: " + problem)
            .collect(Collectors.joining());
  }
}

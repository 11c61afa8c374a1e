package ucm.pipeline.catalog;

import ucm.api.StoreException;

/**
 * A stage was asked for that is not there. The message lists what was found, where it was searched,
 * what was not loaded and why, and the nearest name.
 */
public final class UnknownStageException extends StoreException {

  private static final long serialVersionUID = 1L;

  private final String stage;
  private final String nearest;
  private final String summary;

  public UnknownStageException(String stage, StoreCatalog catalog) {
    this(stage, NearestName.among(catalog.names(), stage), catalog);
  }

  private UnknownStageException(String stage, String nearest, StoreCatalog catalog) {
    super(summary(stage, nearest, catalog) + details(catalog));
    this.stage = stage;
    this.nearest = nearest;
    this.summary = summary(stage, nearest, catalog);
  }

  /** The name that was asked for. */
  public String stage() {
    return stage;
  }

  /** The known name nearest to it, or empty. */
  public String nearest() {
    return nearest;
  }

  /** The first sentence of the message. */
  public String summary() {
    return summary;
  }

  private static String summary(String stage, String nearest, StoreCatalog catalog) {
    for (StoreEntry entry : catalog.entries()) {
      if (entry.name().equals(stage)) {
        return "the stage "
            + stage
            + " was found but cannot be used: "
            + entry.problems().getFirst();
      }
    }
    String found = String.join(", ", catalog.names());
    return "there is no stage "
        + stage
        + (nearest.isEmpty() ? "" : "; did you mean " + nearest + "?")
        + (nearest.isEmpty() ? "; " : " ")
        + "Found: "
        + (found.isEmpty() ? "none" : found);
  }

  private static String details(StoreCatalog catalog) {
    StringBuilder text = new StringBuilder("\nsearched: ");
    text.append(String.join("; ", catalog.searched()));
    for (CatalogProblem problem : catalog.problems()) {
      text.append("\nnot loaded: ").append(problem);
    }
    return text.toString();
  }
}

package ucm.pipeline.catalog;

/**
 * Why something that looked like a store could not be used.
 *
 * @param location the jar, folder or module it was found in
 * @param subject the store or class it is about; empty when it is about the whole location
 * @param message what is wrong and what to do
 */
public record CatalogProblem(String location, String subject, String message) {

  @Override
  public String toString() {
    return location + ": " + (subject.isEmpty() ? "" : subject + ": ") + message;
  }
}

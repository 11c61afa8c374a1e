package ucm.pipeline.config;

import java.util.Locale;

/** By what a model is told from others in the names of blocks; see {@code model_fingerprint}. */
public enum ModelFingerprint {
  /** By what is in its weights, and by its effective configuration. */
  WEIGHTS(
      "by what is in the model's files and by its effective configuration, where the engine says"
          + " them"),
  /** By its name or path, and by its effective configuration. */
  CONFIG(
      "by the model's name or path and by its effective configuration, where the engine says it"),
  /** By its name or path alone, as the original does. */
  PATH(
      "by the model's name or path alone, as the original does: remove the blocks when its weights"
          + " or its configuration change");

  private final String meaning;

  ModelFingerprint(String meaning) {
    this.meaning = meaning;
  }

  /** The word of the configuration. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** A line for people. */
  public String line() {
    return "model_fingerprint is " + word() + ": blocks are named " + meaning;
  }
}

package ucm.api.admin;

import java.util.Arrays;
import java.util.List;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * A service beside {@code Store}: looks whether this machine has what a module needs, and says what to do
 * where it has not. {@code ucm doctor} shows the findings of all.
 *
 * <p>A module that has something to look at says {@code provides ucm.api.admin.HealthCheck with ...}. Creating one
 * does nothing. Stateless; called by one thread. A jar of plugins may bring one beside its store.
 */
public interface HealthCheck {

  /**
   * One thing that was looked at.
   *
   * @param status how it is
   * @param subject what was looked at, in few words, for example {@code open files}
   * @param found what there is
   * @param advice what to do; empty when nothing needs to be done
   */
  record Finding(Status status, String subject, String found, String advice) {

    /** As it should be. */
    public static Finding ok(String subject, String found) {
      return new Finding(Status.OK, subject, found, "");
    }

    /** It works, less well than it could. */
    public static Finding warning(String subject, String found, String advice) {
      return new Finding(Status.WARNING, subject, found, advice);
    }

    /** What was asked for does not work like this. */
    public static Finding failed(String subject, String found, String advice) {
      return new Finding(Status.FAILED, subject, found, advice);
    }
  }

  /** How a thing is. */
  enum Status {
    /** As it should be. */
    OK,
    /** It works, less well than it could, or may fail later. */
    WARNING,
    /** What the configuration asks for does not work. */
    FAILED
  }

  /**
   * Looks. May take seconds, and leaves nothing behind. Never throws for what it finds.
   *
   * @param config the values of the pipeline in question, with {@code store_pipeline} among them (see
   *     {@link #isInPipeline}); without any, what is asked for is taken to be the defaults. What is wrong
   *     in it is somebody else's business
   * @return the findings, in the order to be shown
   */
  List<Finding> look(StoreConfig config);

  /**
   * Whether the pipeline in question has a stage.
   *
   * @param config what {@link #look} is given
   * @param stage the name of a store
   */
  static boolean isInPipeline(StoreConfig config, String stage) {
    return config.find(ConfigKey.text("store_pipeline")).stream()
        .flatMap(pipeline -> Arrays.stream(pipeline.split("\\|", -1)))
        .anyMatch(name -> name.strip().equals(stage));
  }
}

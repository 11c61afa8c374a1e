package ucm.api.admin;

import java.util.List;
import ucm.api.config.StoreConfig;

/**
 * A service beside {@code Store}: checks whether this machine has what a module needs, and says what to do
 * where it does not. {@code ucm doctor} shows the findings of all.
 *
 * <p>A module that has something to check says {@code provides ucm.api.admin.HealthCheck with ...}. Creating one
 * does nothing. Stateless; called by one thread. A jar of plugins may bring one beside its store.
 */
public interface HealthCheck {

  /**
   * One thing that was checked.
   *
   * @param status how it is
   * @param subject what was checked, in few words, for example {@code open files}
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
   * Checks the machine. May take seconds, and leaves nothing on the machine. Never throws for what it
   * finds.
   *
   * @param config the values of the pipeline in question; without any, the defaults count. Mistakes in
   *     the values are reported elsewhere
   * @param stages the names of the pipeline's stages, the one nearest the engine first; empty when no
   *     pipeline is in question
   * @return the findings, in the order to be shown
   */
  List<Finding> run(StoreConfig config, List<String> stages);
}

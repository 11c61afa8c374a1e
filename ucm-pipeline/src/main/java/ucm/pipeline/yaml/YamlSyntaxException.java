package ucm.pipeline.yaml;

import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;

/** A text is not what it should be. */
public final class YamlSyntaxException extends Exception {

  private static final long serialVersionUID = 1L;

  private final transient ConfigProblem problem;

  YamlSyntaxException(ConfigOrigin at, String message) {
    super(message);
    this.problem = ConfigProblem.error(at, "", message);
  }

  public ConfigProblem problem() {
    return problem;
  }
}

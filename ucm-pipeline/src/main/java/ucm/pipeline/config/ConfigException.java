package ucm.pipeline.config;

import java.util.List;
import ucm.api.StoreException;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;

/** A configuration cannot be used; the message is the whole report. */
public final class ConfigException extends StoreException {

  private static final long serialVersionUID = 1L;

  private final transient ConfigReport report;

  public ConfigException(ConfigReport report) {
    super(report.text());
    this.report = report;
  }

  public ConfigException(ConfigOrigin at, String message) {
    this(new ConfigReport(List.of(ConfigProblem.error(at, "", message))));
  }

  public ConfigReport report() {
    return report;
  }
}

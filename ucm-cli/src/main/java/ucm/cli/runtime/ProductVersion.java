package ucm.cli.runtime;

import java.lang.module.ModuleDescriptor;

/**
 * The version that the build wrote into the module's descriptor. {@code ucm --version} needs this class and no
 * library, so that nothing is loaded for it that the start-up archive does not have.
 */
public final class ProductVersion {

  private ProductVersion() {}

  public static String line() {
    // The operator + would set up its call site at each start, which takes as long as all else
    // here.
    return "ucm ".concat(text());
  }

  public static String text() {
    ModuleDescriptor module = ProductVersion.class.getModule().getDescriptor();
    return module == null ? "unknown" : module.rawVersion().orElse("unknown");
  }
}

package ucm.cli.setup;

import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import ucm.cli.output.CliCommand;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.FormatOptions;
import ucm.cli.runtime.PluginsOption;
import ucm.cli.setup.PluginShelf.Plugin;

/** {@code ucm plugins}: stores that come with the image, and are loaded only where they are wanted. */
@Command(
    name = "plugins",
    description = {
      "Lists, enables and disables the plugins that come with the image.",
      "",
      "One that is enabled is loaded by every command and daemon that starts afterwards; a daemon"
          + " that runs goes on with what it began with."
    })
public final class PluginsCommand extends CliCommand {

  private static final Columns<Plugin> PLUGINS =
      new Columns<Plugin>()
          .both("NAME", "name", Plugin::name)
          .both("STATE", "state", plugin -> plugin.state().word())
          .both("LOCATION", "location", Plugin::location);

  private static PluginShelf shelf(PluginsOption plugins) {
    // The home of a jlinked runtime is the image itself.
    Path zips = Path.of(System.getProperty("java.home"), "share", "plugins");
    return new PluginShelf(zips, plugins.folder());
  }

  @Command(
      name = "list",
      description =
          "Prints which plugins the image brings, which are enabled, and which are your own.")
  int list(
      @Option(names = "--json", description = "print JSON instead of a table") boolean json,
      @Mixin PluginsOption plugins) {
    List<Plugin> all = shelf(plugins).all();
    if (json) {
      FormatOptions.json(out(), new Fields().with("plugins", PLUGINS.data(all)));
    } else if (all.isEmpty()) {
      say("There are no plugins.");
    } else {
      PLUGINS.table(all).printSection(out());
    }
    return 0;
  }

  @Command(
      name = "enable",
      description =
          "Unpacks a plugin of the image into the folder of plugins; also one that is there in"
              + " another version.")
  int enable(
      @Parameters(paramLabel = "NAME", description = "as list prints it") String name,
      @Option(names = "--json", description = "print JSON instead of text") boolean json,
      @Mixin PluginsOption plugins) {
    return tell(shelf(plugins).enable(name), json, "is enabled");
  }

  @Command(name = "disable", description = "Removes what enable has unpacked.")
  int disable(
      @Parameters(paramLabel = "NAME", description = "as list prints it") String name,
      @Option(names = "--json", description = "print JSON instead of text") boolean json,
      @Mixin PluginsOption plugins) {
    return tell(shelf(plugins).disable(name), json, "is disabled");
  }

  private int tell(Plugin plugin, boolean json, String now) {
    if (json) {
      FormatOptions.json(out(), PLUGINS.data(plugin));
    } else {
      say(plugin.name() + " " + now + ": " + plugin.location());
    }
    return 0;
  }
}

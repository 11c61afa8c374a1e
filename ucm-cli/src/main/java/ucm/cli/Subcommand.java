package ucm.cli;

/**
 * A command of {@code ucm} that another module brings, found as a service. Its class has picocli's
 * annotation {@code Command} with a name, a public constructor without parameters, and its package is
 * open to picocli. It is made only when the command is asked for, or help names all commands.
 */
public interface Subcommand extends Runnable {}

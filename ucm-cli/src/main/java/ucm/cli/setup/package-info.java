/**
 * {@code ucm config}, {@code stores} and {@code doctor}: is this configuration right, on this
 * machine? A YAML file goes in, findings come out. Nothing it writes stays.
 */
package ucm.cli.setup;

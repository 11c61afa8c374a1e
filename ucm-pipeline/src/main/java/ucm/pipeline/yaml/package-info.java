/**
 * YAML with the position of each value, and the shell's words in values. Text goes in, nodes or an
 * error with line and column come out. It knows no key.
 */
package ucm.pipeline.yaml;

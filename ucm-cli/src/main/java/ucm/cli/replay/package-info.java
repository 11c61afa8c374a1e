/**
 * {@code ucm demo}, {@code trace replay} and {@code explain}: prompts through a real pipeline.
 * Requests go in; hits, times and reasons of misses come out. Every loaded byte is compared.
 */
package ucm.cli.replay;

/**
 * Stages chained into one store, as {@code Cache|Posix} says. A checked configuration goes in, an
 * open {@link ucm.pipeline.Pipeline} comes out. It knows no engine.
 */
package ucm.pipeline;

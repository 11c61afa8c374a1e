/**
 * A small inference engine in Java whose KV cache outlives it. It shows which calls an engine
 * makes to the connector, and when. Copy from it.
 */
package ucm.example.engine;

/**
 * The smallest store there is, as its author writes it. Blocks go into a map and come out of it.
 * Copy from it.
 */
package ucm.example.hello;

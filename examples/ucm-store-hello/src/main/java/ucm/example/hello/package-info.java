/** The smallest store there is, as its author writes it. Copy from it. */
package ucm.example.hello;

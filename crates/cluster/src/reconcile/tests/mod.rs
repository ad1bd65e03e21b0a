//! Laws of what is made of several answers.

//! Laws of what is made of several answers, over small replicas whose whole content is known.

mod facts;
mod laws;
mod replica;
mod setting;
mod single;

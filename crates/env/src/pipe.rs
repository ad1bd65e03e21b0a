//! A file's bytes on their way into a socket, without a copy through the process: a pipe of the
//! kernel takes them from the file and gives them to the socket (`splice`).

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use crate::buf::ALIGNMENT;
use crate::env::{Env, Make};
use crate::file::File;
use crate::net::TcpStream;
use crate::real::pipe::RealPipe;

/// The pipe. It takes a chunk at a time, and the next one once that is gone.
pub struct Pipe {
    real: Rc<RealPipe>,
    /// Bytes that it has.
    held: Cell<usize>,
    /// What it has is not known while it is filled, nor if nobody waited for the end of that.
    is_filling: Cell<bool>,
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pipe({} bytes)", self.held.get())
    }
}

impl Pipe {
    /// One for chunks of so many bytes; none in a simulated world, where bytes are copied.
    pub fn new(env: &Env, bytes: usize) -> io::Result<Option<Self>> {
        match &env.0.make {
            Make::Real(_) => Ok(Some(Self {
                real: Rc::new(RealPipe::new(bytes)?),
                held: Cell::new(0),
                is_filling: Cell::new(false),
            })),
            Make::Sim(_) => Ok(None),
        }
    }

    /// Takes at most `len` bytes of a file, one chunk's at most, and says how many. Those are to
    /// be drained before more are taken. Of a file that bypasses the page cache `offset` must be
    /// aligned.
    ///
    /// # Errors
    /// If the file cannot be read so: `InvalidInput`, where its file system does not do it.
    pub async fn fill(&self, file: &File, offset: u64, len: usize) -> io::Result<usize> {
        assert_eq!(self.held.get(), 0, "a pipe is drained before it is filled again");
        if self.is_filling.replace(true) {
            return Err(io::Error::other("a pipe that was left while it was filled"));
        }
        let wanted = len.min(self.real.capacity());
        let asked = match file.is_direct() {
            true => wanted.next_multiple_of(ALIGNMENT).min(self.real.capacity()),
            false => wanted,
        };
        let taken = file.splice(&self.real, offset, asked).await;
        let taken = match taken {
            // nothing was taken
            Err(error) => {
                self.is_filling.set(false);
                return Err(error);
            }
            Ok(taken) => taken,
        };
        // what is behind the end of what was asked for cannot be told apart in the pipe any more
        if taken > wanted {
            return Err(io::Error::other(format!("{taken} bytes of a file instead of {wanted}")));
        }
        self.held.set(taken);
        self.is_filling.set(false);
        Ok(taken)
    }

    /// Gives all that it has to a socket. Cancelled, it may have given a part.
    ///
    /// # Errors
    /// If the connection broke.
    pub async fn drain(&self, to: &TcpStream) -> io::Result<()> {
        while self.held.get() > 0 {
            match to.try_splice(&self.real, self.held.get())? {
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(given) => self.held.update(|held| held - given),
                None => to.writable().await,
            }
        }
        Ok(())
    }
}

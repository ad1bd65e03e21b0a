//! What comes over a connection for streams: messages, headers of files, and the bytes of sections.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use storage::SectionBytes;
use streaming::wire::{Message, Sections};

/// Runs what has all its bytes.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it has all its bytes and waits"),
    }
}

pub fn streams(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(message)) = now(Message::read(&mut rest)) {
        // what was read is written, and read again as the same
        let mut bytes = Vec::new();
        message.write(&mut bytes).expect("what was read fits");
        let again = now(Message::read(&mut bytes.as_slice())).expect("it was written");
        assert_eq!(again.as_ref(), Some(&message));
        if let Message::Stream(header) = message
            && header.whole.is_none()
            && let Ok(mut sections) = Sections::new(&header, &mut rest)
        {
            let due: u64 = header.sections.iter().map(|section| section.bytes()).sum();
            let mut came = 0;
            loop {
                match now(sections.next()) {
                    Ok(bytes) if bytes.is_empty() => break assert_eq!(came, due),
                    Ok(bytes) => came += bytes.len() as u64,
                    Err(_) => break,
                }
            }
        }
    }
}

//! A server that answers.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use env::{Class, Env, ListenOptions, TcpListener, TcpStream};

use crate::frames::{self, HEADER, READ};

/// Version of an answer, and RESULT.
const ANSWER: u8 = 0x84;
const RESULT: u8 = 0x08;

/// Serves on a shard until it is killed.
pub async fn serve(env: &Env, address: SocketAddr, bytes: usize) -> io::Result<()> {
    let listener = TcpListener::bind(env, address, ListenOptions { reuse_port: true })?;
    println!("echo on {address}");
    let answer: Rc<[u8]> = answer(bytes).into();
    loop {
        let (stream, _) = listener.accept().await?;
        let answer = Rc::clone(&answer);
        env.spawn(Class::Statement, async move {
            // whoever goes away is gone
            let _ = connection(&stream, &answer).await;
        });
    }
}

fn answer(bytes: usize) -> Vec<u8> {
    let body = bytes.saturating_sub(HEADER);
    let mut answer = vec![ANSWER, 0, 0, 0, RESULT];
    answer.extend((body as u32).to_be_bytes());
    answer.resize(HEADER + body, b'x');
    answer
}

/// Answers all frames that are there with one write, as the node does.
async fn connection(stream: &TcpStream, answer: &[u8]) -> io::Result<()> {
    let (mut buffer, mut rest, mut out) = (vec![0; READ], Vec::new(), Vec::new());
    loop {
        stream.readable().await;
        let Some(read) = stream.try_read(&mut buffer)? else { continue };
        let Some(new) = buffer.get(..read).filter(|new| !new.is_empty()) else { return Ok(()) };
        if rest.is_empty() {
            let used = answer_all(new, answer, &mut out);
            rest.extend_from_slice(new.get(used..).unwrap_or_default());
        } else {
            rest.extend_from_slice(new);
            let used = answer_all(&rest, answer, &mut out);
            rest.drain(..used);
        }
        stream.write_all(&out).await?;
        out.clear();
    }
}

/// How many bytes of the input were whole frames.
fn answer_all(input: &[u8], answer: &[u8], out: &mut Vec<u8>) -> usize {
    let mut used = 0;
    while let Some(frame) = frames::first(input.get(used..).unwrap_or_default()) {
        let at = out.len();
        out.extend_from_slice(answer);
        frames::set_stream(out.get_mut(at..).unwrap_or_default(), frames::stream(frame));
        used += frame.len();
    }
    used
}

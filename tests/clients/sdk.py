"""Drives one task through the Python SDK; the SDK's own validation judges schemas and results.

usage: sdk.py task|modern|cancel|elicit SERVER ARGUMENT...

Prints one JSON object of what it saw; what the SDK or an assertion refuses ends it with a traceback.
"""

import json
import os
import sys
from contextlib import asynccontextmanager

import anyio
import jsonschema
from mcp import Client, ClientSession, StdioServerParameters, stdio_client
from mcp.types import ElicitResult

EDIT = os.environ["EDIT"]


@asynccontextmanager
async def session(server, **callbacks):
    async with stdio_client(server) as (read, write), ClientSession(read, write, **callbacks) as client:
        await client.initialize()
        yield client


async def tools_of(client):
    """Every tool with schemas that are schemas, closed to unknown fields."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for name, tool in tools.items():
        assert tool.description, name
        assert tool.input_schema["type"] == "object", name
        assert tool.input_schema["additionalProperties"] is False, name
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
        assert tool.annotations is not None, name
    return tools


def said(result):
    """The structure of an answer, which its text repeats."""
    assert json.loads(result.content[0].text) == result.structured_content
    assert result.is_error == ("error" in result.structured_content)
    return result.structured_content


async def task(server):
    progress = {"run_check": [], "finish": []}

    def hears(tool):
        async def callback(now, total, message):
            progress[tool].append(now)

        return callback

    async with session(server) as client:
        tools = await tools_of(client)
        read = said(await client.call_tool("read_file", {"path": "docs/a.md"}))
        expected = {"docs/a.md": read["gitBlob"]}
        patched = said(await client.call_tool("apply_patch", {"patch": EDIT, "expected": expected}))

        # Two at once: each gets its own answer.
        both = {}

        async def call(tool, arguments):
            both[tool] = said(await client.call_tool(tool, arguments, progress_callback=hears("run_check")))

        async with anyio.create_task_group() as group:
            group.start_soon(call, "run_check", {"id": "prose"})
            group.start_soon(call, "task_status", {})

        refused = said(await client.call_tool("read_file", {"path": "docs/a.md", "max_calls": 1000}))
        finished = said(await client.call_tool("finish", {}, progress_callback=hears("finish")))
    for tool, steps in progress.items():
        assert steps, f"no progress of {tool}"
        assert all(one < two for one, two in zip(steps, steps[1:])), steps
    return {
        "tools": sorted(tools),
        "readOnly": sorted(name for name, tool in tools.items() if tool.annotations.read_only_hint),
        "read": read,
        "patched": patched,
        "checked": both["run_check"],
        "status": both["task_status"],
        "refused": refused,
        "finished": finished,
    }


async def modern(server):
    """The protocol without a handshake, if the server has it; the SDK finds out."""
    async with Client(server, mode="auto") as client:
        read = said(await client.call_tool("read_file", {"path": "docs/a.md"}))
        unknown = said(await client.call_tool("upload", {"path": "docs/a.md"}))
        question = said(await client.call_tool("request_input", {"question": "Which line?"}))
        return {"protocol": client.session.protocol_version, "read": read, "unknown": unknown, "question": question}


async def cancel(server):
    """Gives up a check that is under way, and goes on."""
    begun = os.environ["BEGUN"]
    async with session(server) as client:
        with anyio.CancelScope() as scope:

            async def gives_up():
                while not os.path.exists(begun):
                    await anyio.sleep(0.02)
                scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(gives_up)
                await client.call_tool("run_check", {"id": "slow"})
        assert scope.cancelled_caught
        with anyio.fail_after(60):
            return {"status": said(await client.call_tool("task_status", {}))}


async def elicit(server):
    """Asks its user what the worker asks."""
    asked = []

    async def user(_context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "the second line"})

    async with session(server, elicitation_callback=user) as client:
        question = said(await client.call_tool("request_input", {"question": "Which line?"}))
        refused = said(await client.call_tool("finish", {}))
    return {"asked": asked, "question": question, "refused": refused}


async def main():
    what, command, *arguments = sys.argv[1:]
    with anyio.fail_after(110):
        seen = await {"task": task, "modern": modern, "cancel": cancel, "elicit": elicit}[what](
            StdioServerParameters(command=command, args=arguments)
        )
    print(json.dumps(seen))


anyio.run(main)

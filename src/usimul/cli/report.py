"""x."""
import click
@click.command()
def command() -> None:
    """Write."""
